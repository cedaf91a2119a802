// Names the values that may be used in a message, as a person would list them.

/** `a`, `a or b`, `a, b or c`. */
export function alternatives(values: readonly string[]): string {
  const last = values.at(-1) ?? ''
  return values.length < 2 ? last : `${values.slice(0, -1).join(', ')} or ${last}`
}
