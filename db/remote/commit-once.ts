// Commits over a connection that can break. A broken connection does not say whether the server has committed, so each
// commit carries an id, and a repeated one is refused by the server.
import { setTimeout as pause } from 'node:timers/promises'
import { LibsqlBatchError, LibsqlError, type ResultSet } from '@libsql/core/api'
import { databaseTime } from '../schema/node-schema.ts'
import type { BoundStatement } from '../write/rows.ts'
import { asUnreachable, isUnknownOutcome, isUnreachable, notReachedCode, unknownOutcome } from './server-errors.ts'

/** What a server reports when it has not committed, and a repeated commit can succeed. */
const repeatable =
  /^(DATABASE_UNREACHABLE|DATABASE_NOT_REACHED|SQLITE_BUSY|SQLITE_LOCKED|TRANSACTION_|SERVER_ERROR|HRANA_|STREAM_|UNKNOWN$)/
/** Among them, what proves that this attempt was not committed. */
const refused = /^(SQLITE_BUSY|SQLITE_LOCKED|DATABASE_NOT_REACHED)/
/** What proves it when a statement of the commit failed so: the server skips the rest. Other errors can follow the commit. */
const refusedStatement = /^SQLITE_(CONSTRAINT|AUTH|PERM|READONLY|TOOBIG|MISMATCH|RANGE|ERROR|UNKNOWN)/
const pauseMillisecondsMax = 500
/** How long a commit is repeated that the server refuses, and how long its caller waits before others are refused. */
const commitMillisecondsMax = 10_000
/** How long a commit of a server is repeated whose outcome is unknown: no client waits longer. */
const outcomeMillisecondsDefault = 30 * 60 * 1_000

/**
 * `isPatient`: a commit that was never sent is repeated for ten seconds, because what it records has happened. `id`: under which it was sent
 * before, if it was.
 */
export type Patience = { isPatient: boolean; id?: string }

export type Send = (statements: BoundStatement[]) => Promise<ResultSet[]>

export type Commits = {
  /**
   * Commits the statements exactly once. Repeats until the outcome is known. Returns their results, or undefined if an
   * attempt was committed whose response was lost.
   * @throws the error of the server, which has not committed; one that is `isUnreachable` if it did not commit in time;
   * one that is `isUnknownOutcome` after `beginEnd`, or after `outcomeMillisecondsMax`
   */
  commit: (statements: readonly BoundStatement[], patience?: Patience) => Promise<ResultSet[] | undefined>
  /** Whether the outcome of a commit has been unknown for so long that new requests would only wait as well. */
  isOverdue: () => boolean
  /** From now on, commits whose outcome is unknown are repeated for half an hour, because clients wait for them. */
  beginServing: () => void
  /** From now on, commits are repeated for ten seconds at most. */
  beginEnd: () => void
  /** Resolves when no commit is running. */
  settle: () => Promise<void>
}

export type CommitOptions = {
  send: Send
  monotonic: () => number
  /** Called when a commit is repeated no longer although its outcome is unknown. */
  onUnknown: (batchId: string, error: LibsqlError) => void
  /** Called when a commit begins. What it returns is called when the commit has ended. */
  watch?: (() => () => void) | undefined
  /** How long a commit is repeated whose outcome is unknown: half an hour at most, and by default. */
  outcomeMillisecondsMax?: number | undefined
  /** Called with the number of each commit that the server has confirmed: later ones have higher numbers. */
  onConfirmed?: ((number: number) => void) | undefined
  /** How long a commit is repeated that was never sent. */
  patienceMilliseconds: number
}

type CommitState = Required<Patience> & { startedAt: number; isUnknown: boolean }

export function createCommits(options: CommitOptions): Commits {
  const { send, monotonic, onUnknown, watch, patienceMilliseconds } = options
  let { outcomeMillisecondsMax = outcomeMillisecondsDefault } = options
  const running = new Map<CommitState, Promise<unknown>>()
  let endsAt = Number.POSITIVE_INFINITY

  async function repeat(batch: BoundStatement[], own: CommitState): Promise<ResultSet[] | undefined> {
    for (let milliseconds = 10; ; milliseconds = Math.min(2 * milliseconds, pauseMillisecondsMax)) {
      try {
        const [numbered, ...results] = await send(batch)
        if (numbered?.lastInsertRowid !== undefined) options.onConfirmed?.(Number(numbered.lastInsertRowid))
        return results
      } catch (thrown) {
        if (isRepeated(thrown)) return undefined
        if (isUnknownOutcome(thrown)) throw thrown
        const error = isRepeatable(thrown)
          ? thrown
          : await outcomeOf(send, own.id, { error: thrown, isUnknown: own.isUnknown })
        if (error === undefined) return undefined
        own.isUnknown ||= !refused.test(error.code)
        if (
          monotonic() >
          Math.min(
            endsAt,
            own.startedAt +
              patienceFor(error, own, { ofUnknown: outcomeMillisecondsMax, ofUnsent: patienceMilliseconds }),
          )
        )
          throw asUnreachable(error)
        await pause(milliseconds)
        // The process can have been stopped for hours, and the server no longer has the id of an earlier attempt.
        if (monotonic() - own.startedAt > outcomeMillisecondsDefault) throw asUnreachable(error)
      }
    }
  }

  async function commit(statements: readonly BoundStatement[], own: CommitState): Promise<ResultSet[] | undefined> {
    const { id } = own
    const unwatch = watch?.()
    try {
      return await repeat([{ sql: insertBatch, args: [id] }, ...statements], own)
    } catch (error) {
      if (isUnknownOutcome(error)) onUnknown(id, error)
      if (!own.isUnknown || !isUnreachable(error)) throw error
      const unknown = unknownOutcome(id, error)
      onUnknown(id, unknown)
      throw unknown
    } finally {
      running.delete(own)
      unwatch?.()
    }
  }

  return {
    commit: (statements, { isPatient, id = newBatchId() } = { isPatient: false }) => {
      const own = { startedAt: monotonic(), isUnknown: false, isPatient, id }
      const committed = commit(statements, own)
      running.set(own, committed)
      return committed
    },
    isOverdue: () => {
      for (const { isUnknown, startedAt } of running.keys())
        if (isUnknown && monotonic() - startedAt > commitMillisecondsMax) return true
      return false
    },
    beginServing: () => {
      outcomeMillisecondsMax = outcomeMillisecondsDefault
    },
    beginEnd: () => {
      endsAt = Math.min(endsAt, monotonic() + commitMillisecondsMax)
    },
    settle: async () => void (await Promise.allSettled(running.values())),
  }
}

/**
 * Asks whether a commit with this error was made. Undefined if it was, and an error that is repeatable if nobody can say:
 * the question fails, or an earlier attempt without a response can still arrive.
 * @throws the error if it was not made
 */
async function outcomeOf(
  send: Send,
  id: string,
  { error, isUnknown }: { error: unknown; isUnknown: boolean },
): Promise<LibsqlError | undefined> {
  if (isRefusedStatement(error)) throw error
  const [found] = await send([{ sql: 'select 1 from batches where id = ?', args: [id] }]).catch(() => [])
  if (found !== undefined && found.rows.length > 0) return undefined
  if (found === undefined || isUnknown) return asUnreachable(error)
  throw error
}

function patienceFor(
  { code }: LibsqlError,
  { isUnknown, isPatient }: CommitState,
  { ofUnknown, ofUnsent }: { ofUnknown: number; ofUnsent: number },
): number {
  if (isUnknown) return ofUnknown
  return code === notReachedCode && !isPatient ? ofUnsent : commitMillisecondsMax
}

/** Begins with its time, so that new ids share a page of the index. */
export function newBatchId(): string {
  return `${Date.now().toString(16).padStart(12, '0')}-${crypto.randomUUID()}`
}

const insertBatch = `insert into batches (id, at) values (?, ${databaseTime})`
/** Much longer than a commit is repeated. */
const batchMilliseconds = 2 * outcomeMillisecondsDefault

/** Removes the ids of old commits, a few thousand at a time. */
export const dropOldBatches: BoundStatement = {
  sql: `delete from batches where number in (
    select number from (select number, at from batches order by number limit 3000) where at < ${databaseTime} - ${batchMilliseconds})`,
  args: [],
}

function isRepeated(error: unknown): boolean {
  return error instanceof LibsqlError && /UNIQUE constraint failed: batches\.id/.test(error.message)
}

function isRefusedStatement(error: unknown): boolean {
  return error instanceof LibsqlBatchError && refusedStatement.test(error.code)
}

function isRepeatable(error: unknown): error is LibsqlError {
  return error instanceof LibsqlError && repeatable.test(error.code)
}
