// What the errors of a database file say about its disk and the file itself, and why a database is not opened.
import { LibsqlError } from '@libsql/core/api'

/** Returns why a write did not reach the disk, in SQLite's words, or undefined for any other error. */
export function writeObstacle(error: unknown): { kind: 'full' | 'failed'; text: string } | undefined {
  if (!(error instanceof Error)) return undefined
  const code = error instanceof LibsqlError ? String(error.code) : ''
  if (!/^SQLITE_(FULL|IOERR)/.test(code)) return writeObstacle(error.cause)
  const text = error.message.replace(/^SQLITE_\w+: /, '')
  return { kind: code.startsWith('SQLITE_FULL') ? 'full' : 'failed', text }
}

/** The sentence for who runs the program: what is damaged, and the way back. `damage` is what SQLite says. */
export function damagedFile(path: string, damage: string): string {
  return `The database ${JSON.stringify(path)} is damaged (${damage}): stop the server, keep the file and its log, and restore a backup; see: latchkey help disaster`
}

/** Returns what SQLite says of a damaged file, or undefined for any other error. */
export function damageOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const code = error instanceof LibsqlError ? String(error.code) : ''
  if (!/^SQLITE_(CORRUPT|NOTADB)/.test(code)) return damageOf(error.cause)
  return error.message.replace(/^SQLITE_\w+: /, '')
}

/**
 * Why a database was not opened: it is missing, another process holds it, a newer program migrated it, only a node may
 * migrate it, or it is damaged or not a database.
 */
export type OpenRefusal = {
  refused: 'missing' | 'held' | 'newer_schema' | 'older_schema' | 'unreadable' | 'unreachable'
  message: string
  cause?: unknown
}

export function heldRefusal(path: string, cause?: unknown): OpenRefusal {
  return { refused: 'held', message: `Another process holds the database ${JSON.stringify(path)}`, cause }
}

export function refusalOf(error: unknown, path: string): OpenRefusal {
  if (isBusy(error)) return heldRefusal(path, error)
  const damage = damageOf(error)
  if (damage !== undefined) return { refused: 'unreadable', message: damagedFile(path, damage), cause: error }
  const text = error instanceof Error ? error.message : String(error)
  // 14 is SQLITE_CANTOPEN, without a cause.
  const said = /: 14"?\)?$/.test(text) ? 'the file can be neither opened nor created; check its path' : text
  const why = writeObstacle(error)?.kind === 'full' ? 'the disk that holds it is full; free some space' : said
  return {
    refused: 'unreadable',
    message: `The database ${JSON.stringify(path)} cannot be opened: ${why}`,
    cause: error,
  }
}

/** Reports whether an error is SQLITE_BUSY. After SQLITE_BUSY, libSQL can lose writes that it acknowledges. */
export function isBusy(error: unknown): boolean {
  return error instanceof LibsqlError && /SQLITE_BUSY|database is locked/.test(`${error.code} ${error.message}`)
}
