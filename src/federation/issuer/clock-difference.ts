// How far the clock of this server and those of the issuers are apart, as far as recent exchanges show it.
import type { SubjectToken } from '../subject-token/claims.ts'

export type ClockDifferences = {
  /** Takes the `iat` of a verified token, if it has one. `now` in milliseconds since 1970. */
  note: (issuerId: string, token: SubjectToken, now: number) => void
  /** `now − iat` of recent tokens in seconds, in no order. A token that is used again counts again. */
  of: (issuerId: string) => readonly number[]
}

/** As many say whether a difference is a habit. */
const keptMax = 32

/** Adds to `onDeleted` how to forget a deleted issuer. */
export function createClockDifferences(onDeleted: ((id: string) => void)[] = []): ClockDifferences {
  const known = new Map<string, { seconds: number[]; next: number }>()
  onDeleted.push((id) => void known.delete(id))
  return {
    note: (issuerId, { payload: { iat } }, now) => {
      if (typeof iat !== 'number') return
      const found = known.get(issuerId) ?? { seconds: [], next: 0 }
      known.set(issuerId, found)
      found.seconds[found.next] = now / 1_000 - iat
      found.next = (found.next + 1) % keptMax
    },
    of: (issuerId) => known.get(issuerId)?.seconds ?? [],
  }
}
