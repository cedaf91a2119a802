// The fields of a JSON object. A null counts as absent (reference: Preset parameters).

export type Fields = Record<string, unknown>

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value of an own member; undefined where it is absent or null. */
export function memberOf(value: Fields, name: string): unknown {
  return Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined
}

/** The members of these names that are present, in the order of the names. */
export function pick(fields: Fields, names: readonly string[]): Fields {
  return omitUndefined(Object.fromEntries(names.map((name) => [name, memberOf(fields, name)])))
}

/** A copy without the members that are undefined. */
export function omitUndefined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
