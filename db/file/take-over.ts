// Takes a database file out of use before another one is put in its place. Use it only in a process that serves no database.
import { closeSync, existsSync, openSync, readSync } from 'node:fs'
import { LibsqlError } from '@libsql/core/api'
import { connect, letGo } from './connection.ts'
import { isBusy, refusalOf } from './file-errors.ts'
import { isForeign } from './open.ts'

/**
 * The lock lasts until the process ends. `settle` moves the log into the main file, after which that file is complete on its own, and closing
 * it touches no file that a later holder may have.
 */
export type TakenOver =
  | { state: 'absent' }
  | { state: 'held' | 'foreign' }
  | { state: 'damaged'; reason: string }
  | { state: 'unreadable'; message: string }
  | { state: 'locked'; settle: () => Promise<void> }

/** Locks the file exclusively, without migrating it. A damaged file cannot be locked. */
export async function takeOver(path: string): Promise<TakenOver> {
  if (!existsSync(path)) return { state: 'absent' }
  // SQLite would remove the log of such a file.
  if (!beginsAsDatabase(path)) return { state: 'damaged', reason: 'it does not begin as a SQLite database' }
  let client: ReturnType<typeof connect> | undefined
  try {
    const opened = connect(path)
    client = opened
    await opened.execute('pragma locking_mode = exclusive')
    if (await isForeign(opened)) return giveBack(opened, { state: 'foreign' })
    // It takes the whole lock, whatever the journal mode. The client ends the transaction, and the lock stays.
    await opened.execute('begin exclusive')
    const settle = async () => {
      const { rows } = await opened.execute('pragma journal_mode = delete')
      if (rows[0]?.[0] !== 'delete') throw new Error('the log cannot be moved into the database')
    }
    return { state: 'locked', settle }
  } catch (error) {
    const { message } = error as Error
    const isDamaged = error instanceof LibsqlError && /^SQLITE_(CORRUPT|NOTADB)/.test(String(error.code))
    if (isDamaged) return giveBack(client, { state: 'damaged', reason: message })
    return giveBack(client, isBusy(error) ? { state: 'held' } : { state: 'unreadable', ...refusalOf(error, path) })
  }
}

/** An empty file counts: a new database that has not been written yet. */
function beginsAsDatabase(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const head = Buffer.alloc(16)
    const bytes = readSync(file, head, 0, head.length, 0)
    return bytes === 0 || head.toString('latin1') === 'SQLite format 3\0'
  } finally {
    closeSync(file)
  }
}

function giveBack(client: ReturnType<typeof connect> | undefined, result: TakenOver): TakenOver {
  client?.close()
  letGo()
  return result
}
