// Which subject tokens have been exchanged under replay protection (decisions §1). Memory decides, at once and for good; the database keeps
// it over a restart. A use is forgotten once the token has expired by the time of day and by the time that has passed since, so that a
// clock that is wrong for a while lets no token in again. It does not know policies.
import { createHash } from 'node:crypto'
import type { UsedSubjectToken } from '../../db/schema.ts'
import { usedSubjectTokensMax } from '../limits.ts'
import { type Refusal, refuse } from './refusal.ts'

export type ReplayGuard = {
  /**
   * Takes note of a token by its issuer and `jti`, never by its text: one signature has several spellings. Times in milliseconds.
   * A refusal, or a promise that resolves once the note is in the database.
   */
  use: (token: { issuerId: string; id: unknown; expiresAt: number }, now: number) => Refusal | { kept: Promise<void> }
}

export type ReplayGuardOptions = {
  known: UsedSubjectToken[]
  keep: (row: UsedSubjectToken) => Promise<void>
  /** Drops those that expired by a time. */
  dropExpired: (until: number) => Promise<void>
  /** The time of day at which `known` was read, and milliseconds that only grow. */
  now: number
  monotonic: () => number
}

/** Until when a use counts: the end of the token, and the same in monotonic milliseconds. */
type Note = { expiresAt: number; keptUntil: number }

export function createReplayGuard(options: ReplayGuardOptions): ReplayGuard {
  const { known, keep, dropExpired, monotonic } = options
  const noteOf = (expiresAt: number, now: number): Note => ({ expiresAt, keptUntil: monotonic() + expiresAt - now })
  const used = new Map(known.map((row) => [keyOf(row), noteOf(row.expiresAt, options.now)]))
  let sweepAt = Math.max(1_000, 2 * used.size)

  /** As often as the notes have doubled, so that a use costs the same on average however many there are. */
  function sweep(now: number): void {
    let expiredUntil = now
    const countedUntil = monotonic()
    for (const [key, { expiresAt, keptUntil }] of used) {
      if (expiresAt > now) continue
      if (keptUntil <= countedUntil) used.delete(key)
      else expiredUntil = Math.min(expiredUntil, expiresAt - 1)
    }
    sweepAt = Math.max(1_000, 2 * used.size)
    // What stays in the database by an error is dropped by the next sweep.
    dropExpired(expiredUntil).catch(() => {})
  }

  return {
    use: ({ issuerId, id, expiresAt }, now) => {
      const tokenIdSha256 = hashTokenId(id)
      if (tokenIdSha256 === undefined) return refuse('jti_missing')
      const row = { issuerId, tokenIdSha256, expiresAt }
      const key = keyOf(row)
      if ((used.get(key)?.expiresAt ?? 0) > now) return refuse('replayed', id as string)
      if (used.size >= Math.min(sweepAt, usedSubjectTokensMax)) sweep(now)
      // Forgetting one would let it in again.
      if (used.size >= usedSubjectTokensMax) return refuse('replay_memory_full')
      used.set(key, noteOf(expiresAt, now))
      return { kept: keep(row) }
    },
  }
}

/** What a `jti` is noted under; undefined for one that tells no token apart. */
export function hashTokenId(id: unknown): string | undefined {
  return typeof id === 'string' && id !== '' ? createHash('sha256').update(id).digest('hex') : undefined
}

function keyOf({ issuerId, tokenIdSha256 }: UsedSubjectToken): string {
  return issuerId + tokenIdSha256
}
