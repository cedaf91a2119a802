// Walks parsed JSON.

export type Container = { isObject: boolean; values: readonly unknown[] }

/** Every object and list in a JSON value, itself included, with its values. It does not recurse, so nesting has no limit. */
export function* containersIn(whole: object): Generator<Container, undefined> {
  const waiting = [whole]
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    const isObject = !Array.isArray(value)
    const values: unknown[] = Array.isArray(value) ? value : Object.values(value)
    for (const member of values) if (typeof member === 'object' && member !== null) waiting.push(member)
    yield { isObject, values }
  }
}
