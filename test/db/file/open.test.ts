// Opening a database file: its pragmas, its one holder, its migrations, and every reason to refuse.

import { Database as OtherSqlite } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OpenRefusal } from '../../../db/file/file-errors.ts'
import { type Database, openDatabase } from '../../../db/file/open.ts'
import { migrations, statementsOf } from '../../../db/schema/migrate.ts'
import { readDatabaseFile, rowsInFile } from '../../support/database-file.ts'
import { runCommand, temporaryFolder } from '../../support/latchkey.ts'

const folder = temporaryFolder()
afterAll(folder.remove)
const options = { create: true, synchronous: 'normal' } as const

let files = 0
function newPath(): string {
  files += 1
  return join(folder.path, `${files}.db`)
}

async function open(path: string, more: Partial<Parameters<typeof openDatabase>[0]> = {}): Promise<Database> {
  const database = await openDatabase({ path, ...options, ...more })
  if ('refused' in database) throw new Error(database.message)
  return database
}

async function refusalAt(path: string, more: Partial<Parameters<typeof openDatabase>[0]> = {}): Promise<OpenRefusal> {
  const opened = await openDatabase({ path, ...options, ...more })
  if ('refused' in opened) return opened
  throw new Error(`${path} was opened`)
}

async function pragma({ client }: Database, name: string): Promise<unknown> {
  return (await client.execute(`pragma ${name}`)).rows[0]?.[0]
}

/** Opens a file and prints the refusal or null, then does `more`. */
function openingCode(path: string, more = ''): string {
  const module = join(import.meta.dir, '../../../db/file/open.ts')
  return `const { openDatabase } = await import(${JSON.stringify(module)})
    const opened = await openDatabase(${JSON.stringify({ path, ...options })})
    console.log(JSON.stringify('refused' in opened ? opened : null))
    ${more}`
}

/** Opens a file in a child process, as another program would, and reports the refusal or null. */
async function openElsewhere(path: string): Promise<OpenRefusal | null> {
  const finished = await runCommand(['-e', openingCode(path)], { cwd: folder.path, program: [process.execPath] })
  if (finished.code !== 0) throw new Error(finished.stderr)
  return JSON.parse(finished.stdout) as OpenRefusal | null
}

test('the file is locked for this process alone, with a write-ahead log and foreign keys', async () => {
  const database = await open(newPath())
  expect(await pragma(database, 'busy_timeout')).toBe(5_000)
  expect(await pragma(database, 'journal_mode')).toBe('wal')
  expect(await pragma(database, 'foreign_keys')).toBe(1)
  expect(await pragma(database, 'synchronous')).toBe(1)
  expect(await pragma(database, 'wal_autocheckpoint')).toBe(4_096)
  await database.close()
})

test('synchronous full is in force when it is asked for', async () => {
  const database = await open(newPath(), { synchronous: 'full' })
  expect(await pragma(database, 'synchronous')).toBe(2)
  await database.close()
})

test('the pragmas are still in force after statements that failed and many at once', async () => {
  const database = await open(newPath())
  const failing = database.client.batch(['insert into organizations (id) values (1)'], 'write')
  await expect(failing).rejects.toThrow('NOT NULL')
  await Promise.all(Array.from({ length: 50 }, () => database.client.execute('select 1')))
  expect(await pragma(database, 'busy_timeout')).toBe(5_000)
  expect(await pragma(database, 'foreign_keys')).toBe(1)
  expect(await pragma(database, 'synchronous')).toBe(1)
  await database.close()
})

test('another process is refused with a sentence while the holder lives', async () => {
  const path = newPath()
  const holder = await open(path)
  expect(await openElsewhere(path)).toMatchObject({
    refused: 'held',
    message: `Another process holds the database ${JSON.stringify(path)}`,
  })
  await holder.client.batch(['create table after_the_attempt (id integer)'], 'write')
  expect(rowsInFile(path, "select name from sqlite_schema where name = 'after_the_attempt'")).toHaveLength(1)
  expect(await openElsewhere(path)).toMatchObject({ refused: 'held' })
  await holder.close()
})

test('a process that was refused does not stand in the way of others while it lives', async () => {
  const path = newPath()
  expect(await openElsewhere(path)).toBeNull()
  const reader = new OtherSqlite(path)
  reader.run('begin')
  reader.query('select * from organizations').all()
  const waiting = Bun.spawn([process.execPath, '-e', openingCode(path, 'for await (const _ of process.stdin) {}')], {
    stdin: 'pipe',
    stdout: 'pipe',
  })
  const { value } = await waiting.stdout.getReader().read()
  expect(JSON.parse(Buffer.from(value ?? []).toString())).toMatchObject({ refused: 'held' })
  reader.run('commit')
  reader.close()

  const outcome = await openElsewhere(path)
  waiting.kill()
  await waiting.exited
  expect(outcome).toBeNull()
})

/** Opens a file as earlier versions did, and as other programs do, and prints what becomes of a read and of a write. */
const earlierOpening = (path: string, first: string) => `
  const { default: Libsql } = await import(${JSON.stringify(import.meta.resolve('libsql'))})
  const connection = new Libsql(${JSON.stringify(path)})
  const attempt = (sql) => { try { connection.prepare(sql).all(); return 'ok' } catch (error) { return error.message } }
  if (${JSON.stringify(first)}) attempt(${JSON.stringify(first)})
  console.log(JSON.stringify(['select count(*) from sqlite_master', 'begin immediate'].map(attempt)))
  for await (const _ of process.stdin) {}`

test.each(['pragma locking_mode = exclusive', ''])(
  'a program that opens the file with %p neither gets in nor lets us in',
  async (first) => {
    const path = newPath()
    expect(await openElsewhere(path)).toBeNull()
    const start = async () => {
      const child = Bun.spawn([process.execPath, '-e', earlierOpening(path, first)], { stdin: 'pipe', stdout: 'pipe' })
      const { value } = await child.stdout.getReader().read()
      return { child, outcome: JSON.parse(Buffer.from(value ?? []).toString()) as string[] }
    }
    const before = await start()
    expect(before.outcome).toEqual(['ok', 'ok'])
    expect(await refusalAt(path)).toMatchObject({ refused: 'held' })
    before.child.kill('SIGKILL')
    await before.child.exited

    const database = await open(path)
    await database.commit([
      { sql: 'insert into write_probe (id, at, filler) values (1, 1, zeroblob(2000000))', args: [] },
    ])
    // With the second connection open too.
    await database.reader.all('select 1')
    const after = await start()
    expect(after.outcome).toEqual(['database is locked', 'database is locked'])
    after.child.kill('SIGKILL')
    await after.child.exited
    await database.close()
  },
)

test('this process opens a file once at a time', async () => {
  const path = newPath()
  const database = await open(path)
  expect(await refusalAt(path)).toMatchObject({ refused: 'held' })
  await database.close()
  await (await open(path)).close()
})

test('a missing file is refused, and not made, unless the caller asks to create it', async () => {
  const path = newPath()
  expect(await refusalAt(path, { create: false })).toEqual({
    refused: 'missing',
    message: `There is no database at ${JSON.stringify(path)}`,
  })
  expect(await Bun.file(path).exists()).toBe(false)
})

test('a path with characters that mean something in a URL names that very file', async () => {
  const path = join(folder.path, 'a b%20c?d#e.db')
  const database = await open(path)
  expect(await Bun.file(path).exists()).toBe(true)
  await database.close()
})

test('a file that is not a database is refused and left as it was', async () => {
  const path = newPath()
  const text = 'This is a letter, not a database. '.repeat(500)
  writeFileSync(path, text)
  expect(await refusalAt(path)).toMatchObject({ refused: 'unreadable', message: expect.stringContaining(path) })
  expect(readFileSync(path, 'utf8')).toBe(text)
})

test("another program's database is refused and left as it was", async () => {
  const path = newPath()
  const other = new OtherSqlite(path)
  other.run('create table theirs (a)')
  other.close()
  const before = readFileSync(path)
  expect(await refusalAt(path)).toMatchObject({ refused: 'unreadable', message: expect.stringContaining(path) })
  expect(readFileSync(path).equals(before)).toBe(true)
})

test('a folder is refused as a database', async () => {
  expect(await refusalAt(folder.path)).toMatchObject({ refused: 'unreadable' })
})

test('every migration is recorded once, however often the file is opened', async () => {
  const path = newPath()
  expect(await openElsewhere(path)).toBeNull()
  expect(await openElsewhere(path)).toBeNull()
  const database = await open(path)
  expect(database.migratedFrom).toBeUndefined()
  await database.close()
  expect(rowsInFile(path, 'select version, name from schema_migrations order by version')).toEqual(
    migrations.map(({ version, name }) => ({ version, name })),
  )
})

test('a file that is one version newer is refused by the database and by every command with exit code 3', async () => {
  const path = newPath()
  expect(await openElsewhere(path)).toBeNull()
  const latest = migrations.at(-1)?.version ?? 0
  const newer = new OtherSqlite(path)
  newer.run('insert into schema_migrations values (?, ?, 1)', [latest + 1, 'from the future'])
  newer.close()

  const env = { LATCHKEY_DATABASE_URL: `file:${path}` }
  for (const args of [['keys', 'list'], ['serve', '--listen', '127.0.0.1:0'], ['init']]) {
    const { code, stdout, stderr } = await runCommand(args, { cwd: folder.path, env })
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(stderr).toContain(`schema version ${latest + 1}, this program supports up to ${latest}`)
  }
  expect(await refusalAt(path)).toMatchObject({ refused: 'newer_schema' })
})

test('a migration that fails is undone as a whole, and the ones before it stay', async () => {
  const path = newPath()
  const latest = migrations.at(-1)?.version ?? 0
  const statements = ['create table half_way (id integer)', 'insert into half_way values (1)', 'this is not SQL']
  migrations.push({ version: latest + 1, name: 'broken', statements })
  try {
    expect(await refusalAt(path)).toMatchObject({
      refused: 'unreadable',
      message: expect.stringContaining('syntax error'),
    })
  } finally {
    migrations.pop()
  }
  const [versions, tables] = readDatabaseFile(
    path,
    'select max(version) as latest from schema_migrations',
    "select name from sqlite_schema where name in ('half_way', 'policies')",
  )
  expect(versions).toEqual([{ latest }])
  expect(tables).toEqual([{ name: 'policies' }])
})

test('a migration whose record cannot be written is undone as a whole', async () => {
  const path = newPath()
  const latest = migrations.at(-1)?.version ?? 0
  // It takes its own number, so that the record meets a row that is there.
  const taken = `insert into schema_migrations values (${latest + 1}, 'taken', 1)`
  migrations.push({ version: latest + 1, name: 'next', statements: ['create table half_way (id integer)', taken] })
  try {
    expect(await refusalAt(path)).toMatchObject({ refused: 'unreadable' })
  } finally {
    migrations.pop()
  }
  const [versions, tables] = readDatabaseFile(
    path,
    'select max(version) as latest from schema_migrations',
    "select name from sqlite_schema where name = 'half_way'",
  )
  expect(versions).toEqual([{ latest }])
  expect(tables).toEqual([])
})

test('a migration is split at the ends of statements, with triggers whole', () => {
  const trigger = 'create trigger t before delete on a\nbegin\n  select 1;\n  select 2;\nend;'
  expect(statementsOf(`-- a comment\ncreate table a (\n  b text\n);\n\n${trigger}\nselect 3;\n`)).toEqual([
    'create table a (\n  b text\n);',
    trigger,
    'select 3;',
  ])
  expect(() => statementsOf('select 1')).toThrow('without a semicolon')
})
