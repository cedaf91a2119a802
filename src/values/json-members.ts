// Checks members of parsed JSON without a shape, for what exchanges and inference requests read: they need no arktype.

export function isStringArray(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
}

/** Whether the value is an object or list in which the members of these names are strings. */
export function hasStrings<Name extends string>(value: unknown, names: readonly Name[]): value is Record<Name, string> {
  return hasMembers(value) && names.every((name) => typeof value[name] === 'string')
}

/** The same for members that may be missing. */
export function hasOptionalStrings<Name extends string>(
  value: unknown,
  names: readonly Name[],
): value is Partial<Record<Name, string>> {
  return hasMembers(value) && names.every((name) => ['string', 'undefined'].includes(typeof value[name]))
}

function hasMembers(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
