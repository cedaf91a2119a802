// A database whose batches a test can watch, delay and fail, to check how the writer handles each outcome.
import { LibsqlError } from '@libsql/client'
import type { Database } from '../../db/open.ts'

export type Watched = {
  database: Database
  /** The number of statements in every requested batch. */
  batches: number[]
  /** Called before and after each batch reaches the database. A promise delays the batch; an error fails it. */
  before: () => Promise<void> | void
  after: () => Promise<void> | void
}

export function watchBatches(database: Database): Watched {
  const watched: Watched = { database, batches: [], before: () => {}, after: () => {} }
  const commit: Database['commit'] = async (statements) => {
    watched.batches.push(statements.length)
    await watched.before()
    await database.commit(statements)
    await watched.after()
  }
  watched.database = { ...database, commit }
  return watched
}

/** The error that libSQL throws while another connection holds the lock. */
export function busyError(): LibsqlError {
  return new LibsqlError('database is locked', 'SQLITE_BUSY')
}
