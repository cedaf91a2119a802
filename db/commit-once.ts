// Commits over a connection that can break. A broken connection does not say whether the server has committed, so each
// commit carries an id, and a repeated one is refused by the server.
import { setTimeout as pause } from 'node:timers/promises'
import { LibsqlError, type ResultSet } from '@libsql/client'
import { databaseTime } from './node-schema.ts'
import type { BoundStatement } from './rows.ts'

/** The code of errors of a database server that did not respond. */
export const unreachableCode = 'DATABASE_UNREACHABLE'
/** What a server reports when it has not committed, and a repeated commit can succeed. */
const repeatable = /^(DATABASE_UNREACHABLE|SQLITE_BUSY|SQLITE_LOCKED|TRANSACTION_|SERVER_ERROR|HRANA_|STREAM_|UNKNOWN$)/
const pauseMillisecondsMax = 500

export type Send = (statements: BoundStatement[]) => Promise<ResultSet[]>

/**
 * Commits the statements exactly once. Repeats while the outcome is unknown, for at most `patienceMilliseconds`. Returns
 * their results, or undefined if an attempt was committed whose response was lost.
 * @throws the error of the server, which has not committed; after the time, one that is `isUnreachable`
 */
export async function commitOnce(
  send: Send,
  statements: readonly BoundStatement[],
  patienceMilliseconds: number,
): Promise<ResultSet[] | undefined> {
  const batch = [{ sql: insertBatch, args: [newBatchId()] }, ...statements]
  const giveUpAt = performance.now() + patienceMilliseconds
  for (let milliseconds = 10; ; milliseconds = Math.min(2 * milliseconds, pauseMillisecondsMax)) {
    try {
      return (await send(batch)).slice(1)
    } catch (error) {
      if (isRepeated(error)) return undefined
      if (!isRepeatable(error)) throw error
      if (performance.now() + milliseconds > giveUpAt) throw asUnreachable(error)
    }
    await pause(milliseconds)
  }
}

/** Begins with its time, so that new ids share a page of the index. */
function newBatchId(): string {
  return `${Date.now().toString(16).padStart(12, '0')}-${crypto.randomUUID()}`
}

const insertBatch = `insert into batches (id, at) values (?, ${databaseTime})`
/** Much longer than a commit is repeated. */
const batchMilliseconds = 10 * 60 * 1_000

/** Removes the ids of old commits, a few thousand at a time. */
export const dropOldBatches: BoundStatement = {
  sql: `delete from batches where number in (
    select number from (select number, at from batches order by number limit 3000) where at < ${databaseTime} - ${batchMilliseconds})`,
  args: [],
}

function isRepeated(error: unknown): boolean {
  return error instanceof LibsqlError && /UNIQUE constraint failed: batches\.id/.test(error.message)
}

function isRepeatable(error: unknown): boolean {
  return error instanceof LibsqlError && repeatable.test(error.code)
}

/** Reports whether a database server did not respond, so that the outcome of a commit can be unknown. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof LibsqlError && error.code === unreachableCode
}

export function asUnreachable(cause: unknown): LibsqlError {
  if (cause instanceof LibsqlError && cause.code === unreachableCode) return cause
  const said = cause instanceof Error ? cause.message : String(cause)
  const error = cause instanceof Error ? cause : undefined
  return new LibsqlError(`The database server cannot be reached: ${said}`, unreachableCode, undefined, undefined, error)
}
