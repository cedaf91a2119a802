// A database whose batches a test can watch, delay and fail, to check how the writer handles each outcome.
import { type Client, LibsqlError } from '@libsql/client'
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
  const batch: Client['batch'] = async (statements, mode) => {
    watched.batches.push(statements.length)
    await watched.before()
    const result = await database.client.batch(statements, mode)
    await watched.after()
    return result
  }
  const client = new Proxy(database.client, {
    get: (target, name) => {
      if (name === 'batch') return batch
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  watched.database = { ...database, client }
  return watched
}

/** The error that libSQL throws while another connection holds the lock. */
export function busyError(): LibsqlError {
  return new LibsqlError('database is locked', 'SQLITE_BUSY')
}
