// What the errors of a database file say about its disk and the file itself.
import { LibsqlError } from '@libsql/client'

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
