// A database whose batches a test can watch, delay and fail, to check how the writer handles each outcome.
import { LibsqlError } from '@libsql/client'
import type { Database } from '../../db/file/open.ts'

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
  async function watch<Committed>(statements: number, commit: () => Promise<Committed>): Promise<Committed> {
    watched.batches.push(statements)
    await watched.before()
    const committed = await commit()
    await watched.after()
    return committed
  }
  const { shared } = database
  watched.database = {
    ...database,
    commit: (statements) => watch(statements.length, async () => database.commit(statements)),
    commitInSlices: (statements) => watch(statements.length, () => database.commitInSlices(statements)),
    shared: shared && {
      ...shared,
      commitChange: (statements, basis) => watch(statements.length, () => shared.commitChange(statements, basis)),
    },
  }
  return watched
}

/** The error that libSQL throws while another connection holds the lock. */
export function busyError(): LibsqlError {
  return new LibsqlError('database is locked', 'SQLITE_BUSY')
}
