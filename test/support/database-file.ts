// Reads a database file from outside the owning process: another SQLite in a child process opens a copy of the file and
// its write-ahead log. The holder's connection, its lock and the log on disk do not affect the result. A database on a
// running server (sqld.ts) is read there.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { databaseFileOf } from './server-kind.ts'

type SqlRow = Record<string, string | number | null>

const reader = `
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Database } from 'bun:sqlite'
const [path, ...queries] = process.argv.slice(1)
if (/^https?:/.test(path)) {
  process.stdout.write(JSON.stringify(await Promise.all(queries.map(ask))))
  process.exit()
}
const folder = mkdtempSync(join(tmpdir(), 'lk-'))
for (const end of ['', '-wal']) if (existsSync(path + end)) copyFileSync(path + end, join(folder, 'copy.db' + end))
const database = new Database(join(folder, 'copy.db'))
process.stdout.write(JSON.stringify(queries.map((sql) => database.query(sql).all())))
database.close()
rmSync(folder, { recursive: true })

async function ask(sql) {
  const { origin, hash } = new URL(path)
  const body = JSON.stringify({ requests: [{ type: 'execute', stmt: { sql } }, { type: 'close' }] })
  const headers = { 'x-namespace': hash.slice(1) }
  const { results } = await (await fetch(origin + '/v2/pipeline', { method: 'POST', headers, body })).json()
  if (results[0].type === 'error') throw new Error(results[0].error.message)
  const { cols, rows } = results[0].response.result
  const toJson = ({ type, value }) => (type === 'integer' ? Number(value) : (value ?? null))
  return rows.map((row) => Object.fromEntries(row.map((value, index) => [cols[index].name, toJson(value)])))
}
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

/** Returns the bytes of all files in a folder and in the folders within it. */
export function readFilesIn(folder: string): Buffer {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return Buffer.concat(files.map(({ parentPath, name }) => readFileSync(join(parentPath, name))))
}
