// Compares JSON values.

/** Whether two values are the same JSON. The order of members does not count. */
export function isSame(one: unknown, other: unknown): boolean {
  return one === other || canonicalText(one) === canonicalText(other)
}

/** JSON with sorted members. */
export function canonicalText(value: unknown): string {
  const sortMembers = (_name: string, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : member
  return JSON.stringify(value, sortMembers) ?? ''
}
