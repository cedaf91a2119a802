// How many tokens a second upstreams and keys have taken lately, for people who watch. Nothing is decided by it.

/** Older tokens count less and less: by half after 7 s. */
const memoryMilliseconds = 10_000

export type TokenRates = {
  note: (id: string, tokens: number) => void
  /** Tokens a second. */
  of: (id: string) => number
}

/** `monotonic` in milliseconds. One entry for each id that was ever noted, of two numbers. */
export function createTokenRates(monotonic: () => number): TokenRates {
  const noted = new Map<string, { tokens: number; at: number }>()
  const remainder = ({ tokens, at }: { tokens: number; at: number }, now: number) =>
    tokens * Math.exp((at - now) / memoryMilliseconds)
  return {
    note: (id, tokens) => {
      const now = monotonic()
      const found = noted.get(id)
      if (found === undefined) return void noted.set(id, { tokens, at: now })
      found.tokens = tokens + remainder(found, now)
      found.at = now
    },
    of: (id) => {
      const found = noted.get(id)
      return found === undefined ? 0 : (remainder(found, monotonic()) * 1_000) / memoryMilliseconds
    },
  }
}
