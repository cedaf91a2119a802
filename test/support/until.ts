// Waits for a state without an event: it checks at every turn of the event loop and fails at a deadline.
const millisecondsMax = 20_000

/**
 * Resolves with the first value that is not undefined or false.
 * @throws after 20 s, with the awaited and the actual value
 */
export async function until<Value>(
  what: string,
  look: () => Value | Promise<Value>,
  tell: () => unknown = () => '',
): Promise<Exclude<Value, undefined | false>> {
  const deadline = performance.now() + millisecondsMax
  for (;;) {
    const seen = await look()
    if (seen !== undefined && seen !== false) return seen as Exclude<Value, undefined | false>
    if (performance.now() > deadline) throw new Error(`Waited in vain for ${what} ${JSON.stringify(await tell())}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}
