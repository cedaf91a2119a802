// Records which subject tokens were exchanged under replay protection (reference: Replay protection). Memory decides;
// the database keeps the uses across restarts. A use is dropped once the token has expired both by the clock and by
// elapsed time, so a wrong clock never accepts a token twice. It does not know policies.
import { createHash } from 'node:crypto'
import { setImmediate as giveWay } from 'node:timers/promises'
import type { UsedSubjectToken } from '../../db/schema/record-schema.ts'
import { usedSubjectTokensMax } from '../limits.ts'
import { type Refusal, refuse } from './subject-token/refusal.ts'

export type ReplayGuard = {
  /**
   * Records the use of a token by its issuer and `jti`. The text is no identity, because one signature has several
   * encodings. Times are in milliseconds. Returns a refusal, or a promise that resolves when the use is in the
   * database, to a refusal if another node has recorded it before.
   */
  use: (
    token: { issuerId: string; id: unknown; expiresAt: number },
    now: number,
  ) => Refusal | { kept: Promise<Refusal | undefined> }
}

/** Identifies a recorded use. */
export type NotedToken = Omit<UsedSubjectToken, 'expiresAt'>

export type ReplayGuardOptions = {
  known: UsedSubjectToken[]
  /** Resolves to false if another node has recorded the use. */
  keep: (row: UsedSubjectToken) => Promise<boolean>
  /** Deletes uses from the database. */
  drop: (tokens: NotedToken[]) => Promise<void>
  /** `now` is the time of day at which `known` was read; `monotonic` returns monotonic milliseconds. */
  now: number
  monotonic: () => number
}

/** When a use ends: the expiry of the token, and the same time in monotonic milliseconds. */
type Note = { expiresAt: number; keptUntil: number }

/** Uses that a sweep visits before it yields, and uses that one commit deletes. Each takes a few milliseconds. */
const notesPerSlice = 4_000
const notesPerCommit = 500
const sweepIntervalMilliseconds = 1_000
/**
 * Below the first number, sweeps do not run. From the second number on, a sweep does not wait until the uses have
 * doubled.
 */
const sweptNotesMin = 1_000
const sweptNotesMax = 0.9 * usedSubjectTokensMax

export function createReplayGuard({ known, keep, drop, monotonic, ...options }: ReplayGuardOptions): ReplayGuard {
  const noteOf = (expiresAt: number, now: number): Note => ({ expiresAt, keptUntil: monotonic() + expiresAt - now })
  const used = new Map(known.map((row) => [keyOf(row), noteOf(row.expiresAt, options.now)]))
  const nextSweepSize = () => Math.max(sweptNotesMin, Math.min(2 * used.size, sweptNotesMax))
  let sweepSize = nextSweepSize()
  let sweptAt = Number.NEGATIVE_INFINITY
  let isSweeping = false

  /** Sweeps when the uses have doubled or are near the limit, at most once a second. No exchange waits for it. */
  function sweepWhenDue(now: number): void {
    if (used.size < sweepSize || isSweeping || monotonic() - sweptAt < sweepIntervalMilliseconds) return
    isSweeping = true
    sweptAt = monotonic()
    // The next sweep retries the uses that the database could not delete.
    sweep(now)
      .catch(() => {})
      .finally(() => {
        isSweeping = false
        sweepSize = nextSweepSize()
      })
  }

  async function sweep(now: number): Promise<void> {
    let expired: [key: string, note: Note][] = []
    let seen = 0
    for (const [key, note] of used) {
      if (note.expiresAt <= now && note.keptUntil <= monotonic()) expired.push([key, note])
      if (expired.length >= notesPerCommit) {
        await forget(expired)
        expired = []
      }
      seen += 1
      if (seen % notesPerSlice === 0) await giveWay()
    }
    if (expired.length > 0) await forget(expired)
  }

  /**
   * Deletes from the database first: a token with the same id that is recorded meanwhile is a new use with a later
   * commit.
   */
  async function forget(expired: [key: string, note: Note][]): Promise<void> {
    await drop(expired.map(([key]) => tokenOf(key)))
    for (const [key, note] of expired) if (used.get(key) === note) used.delete(key)
    await giveWay()
  }

  return {
    use: ({ issuerId, id, expiresAt }, now) => {
      const tokenIdSha256 = hashTokenId(id)
      if (tokenIdSha256 === undefined) return refuse('jti_missing')
      const row = { issuerId, tokenIdSha256, expiresAt }
      const key = keyOf(row)
      if ((used.get(key)?.expiresAt ?? 0) > now) return refuse('replayed', id as string)
      sweepWhenDue(now)
      // Dropping a use would accept its token again.
      if (used.size >= usedSubjectTokensMax) return refuse('replay_memory_full')
      used.set(key, noteOf(expiresAt, now))
      return { kept: keep(row).then((isFirst) => (isFirst ? undefined : refuse('replayed', id as string))) }
    },
  }
}

/** Returns the digest under which a `jti` is recorded, or undefined if the `jti` identifies no token. */
export function hashTokenId(id: unknown): string | undefined {
  return typeof id === 'string' && id !== '' ? createHash('sha256').update(id).digest('hex') : undefined
}

function keyOf({ issuerId, tokenIdSha256 }: NotedToken): string {
  return `${issuerId} ${tokenIdSha256}`
}

function tokenOf(key: string): NotedToken {
  const [issuerId = '', tokenIdSha256 = ''] = key.split(' ')
  return { issuerId, tokenIdSha256 }
}
