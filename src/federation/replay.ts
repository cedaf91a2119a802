// Which subject tokens have been exchanged under replay protection (reference: Replay protection). Memory decides, at once and for good; the database keeps
// it over a restart. A use is forgotten once the token has expired by the time of day and by the time that has passed since, so that a
// clock that is wrong for a while lets no token in again. It does not know policies.
import { createHash } from 'node:crypto'
import { setImmediate as giveWay } from 'node:timers/promises'
import type { UsedSubjectToken } from '../../db/schema.ts'
import { usedSubjectTokensMax } from '../limits.ts'
import { type Refusal, refuse } from './subject-token/refusal.ts'

export type ReplayGuard = {
  /**
   * Takes note of a token by its issuer and `jti`, never by its text: one signature has several spellings. Times in milliseconds.
   * A refusal, or a promise that resolves once the note is in the database.
   */
  use: (token: { issuerId: string; id: unknown; expiresAt: number }, now: number) => Refusal | { kept: Promise<void> }
}

/** What a note is found by. */
export type NotedToken = Omit<UsedSubjectToken, 'expiresAt'>

export type ReplayGuardOptions = {
  known: UsedSubjectToken[]
  keep: (row: UsedSubjectToken) => Promise<void>
  /** Drops notes from the database. */
  drop: (tokens: NotedToken[]) => Promise<void>
  /** The time of day at which `known` was read, and milliseconds that only grow. */
  now: number
  monotonic: () => number
}

/** Until when a use counts: the end of the token, and the same in monotonic milliseconds. */
type Note = { expiresAt: number; keptUntil: number }

/** Notes that a sweep looks at before it gives way to others, and that one commit drops: some milliseconds each. */
const notesPerSlice = 4_000
const notesPerCommit = 500
const sweepIntervalMilliseconds = 1_000
/** Notes below which nothing is swept, and from which on a sweep does not wait until they have doubled. */
const sweptNotesMin = 1_000
const sweptNotesMax = 0.9 * usedSubjectTokensMax

export function createReplayGuard({ known, keep, drop, monotonic, ...options }: ReplayGuardOptions): ReplayGuard {
  const noteOf = (expiresAt: number, now: number): Note => ({ expiresAt, keptUntil: monotonic() + expiresAt - now })
  const used = new Map(known.map((row) => [keyOf(row), noteOf(row.expiresAt, options.now)]))
  const nextSweepSize = () => Math.max(sweptNotesMin, Math.min(2 * used.size, sweptNotesMax))
  let sweepSize = nextSweepSize()
  let sweptAt = Number.NEGATIVE_INFINITY
  let isSweeping = false

  /** When the notes have doubled or are nearly too many, and not more than once a second: no use waits for it. */
  function sweepWhenDue(now: number): void {
    if (used.size < sweepSize || isSweeping || monotonic() - sweptAt < sweepIntervalMilliseconds) return
    isSweeping = true
    sweptAt = monotonic()
    // What the database could not drop is tried again by the next sweep.
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

  /** The database first: a token of the same id that is noted meanwhile is another note, and committed later. */
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

function keyOf({ issuerId, tokenIdSha256 }: NotedToken): string {
  return `${issuerId} ${tokenIdSha256}`
}

function tokenOf(key: string): NotedToken {
  const [issuerId = '', tokenIdSha256 = ''] = key.split(' ')
  return { issuerId, tokenIdSha256 }
}
