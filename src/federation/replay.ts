// Which subject tokens have been exchanged under replay protection (decisions §1). Memory decides, at once and for good; the database keeps
// it over a restart. It does not know policies.
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
  dropExpired: (now: number) => Promise<void>
}

export function createReplayGuard({ known, keep, dropExpired }: ReplayGuardOptions): ReplayGuard {
  const used = new Map(known.map((row) => [keyOf(row), row.expiresAt]))
  let sweepAt = Math.max(1_000, 2 * used.size)

  /** As often as the notes have doubled, so that a use costs the same on average however many there are. */
  function sweep(now: number): void {
    for (const [key, expiresAt] of used) if (expiresAt <= now) used.delete(key)
    sweepAt = Math.max(1_000, 2 * used.size)
    // What stays in the database by an error is dropped by the next sweep.
    dropExpired(now).catch(() => {})
  }

  return {
    use: ({ issuerId, id, expiresAt }, now) => {
      const tokenIdSha256 = hashTokenId(id)
      if (tokenIdSha256 === undefined) return refuse('jti_missing')
      const row = { issuerId, tokenIdSha256, expiresAt }
      const key = keyOf(row)
      if ((used.get(key) ?? 0) > now) return refuse('replayed', id as string)
      if (used.size >= Math.min(sweepAt, usedSubjectTokensMax)) sweep(now)
      // Forgetting one would let it in again.
      if (used.size >= usedSubjectTokensMax) return refuse('replay_memory_full')
      used.set(key, expiresAt)
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
