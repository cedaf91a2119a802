// Reads a database file from outside the owning process: another SQLite in a child process opens a copy of the file and
// its write-ahead log. The owner's connection, its lock and the log on disk do not affect the result.
import { databaseFileOf } from './server-kind.ts'

type SqlRow = Record<string, string | number | null>

const reader = `
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Database } from 'bun:sqlite'
const [path, ...queries] = process.argv.slice(1)
const folder = mkdtempSync(join(tmpdir(), 'lk-'))
for (const end of ['', '-wal']) if (existsSync(path + end)) copyFileSync(path + end, join(folder, 'copy.db' + end))
const database = new Database(join(folder, 'copy.db'))
process.stdout.write(JSON.stringify(queries.map((sql) => database.query(sql).all())))
database.close()
rmSync(folder, { recursive: true })
`

/**
 * Returns the rows of each query as a crash at this moment would leave them. This process does nothing else meanwhile.
 */
export function readDatabaseFile(path: string, ...queries: string[]): SqlRow[][] {
  const child = Bun.spawnSync([process.execPath, '-e', reader, databaseFileOf(path), ...queries])
  if (child.exitCode !== 0) throw new Error(child.stderr.toString())
  return JSON.parse(child.stdout.toString()) as SqlRow[][]
}

/** Returns the rows of one query. */
export function rowsInFile(path: string, query: string): SqlRow[] {
  return readDatabaseFile(path, query)[0] ?? []
}
