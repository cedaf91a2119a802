// The second connection of a database file: what it reads, when it runs checkpoints, and what happens when its thread ends.
import { afterAll, expect, test } from 'bun:test'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client, LibsqlError, ResultSet } from '@libsql/client'
import { sql } from 'drizzle-orm'
import { createCheckpoints } from '../../../db/file/checkpoints.ts'
import { connect } from '../../../db/file/connection.ts'
import { type Database, openDatabase } from '../../../db/file/open.ts'
import { createReader } from '../../../db/file/reader.ts'
import { temporaryFolder } from '../../support/latchkey.ts'
import { until } from '../../support/until.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

let files = 0
const newPath = () => join(folder.path, `${++files}.db`)

async function open(more: Partial<Parameters<typeof openDatabase>[0]> = {}): Promise<Database> {
  const database = await openDatabase({ path: newPath(), create: true, synchronous: 'normal', ...more })
  if ('refused' in database) throw new Error(database.message)
  return database
}

const put = (at: number, bytes = 1) => ({
  sql: 'insert into write_probe (id, at, filler) values (1, ?, randomblob(?)) on conflict do update set at = excluded.at, filler = excluded.filler',
  args: [at, bytes],
})
/** More than the first connection reads itself. */
const fill = (database: Database) => database.commit([put(0, 2_000_000)])
const written = sql`update write_probe set at = 9`
const readProbe = 'select at from write_probe'
const endless = 'with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n limit 1'

/** What drizzle reports as the cause. */
const errorOf = (run: PromiseLike<unknown>) =>
  run.then(
    () => undefined,
    (error: Error) => {
      const { code, rawCode, message } = (error.cause ?? error) as LibsqlError
      return { code, rawCode, message }
    },
  )
const ask = (database: Database, text: string): Promise<ResultSet> => database.reader.run(sql.raw(text))

test('a read has every commit that was acknowledged before it, and the rows that the client would return', async () => {
  const database = await open()
  await fill(database)
  for (let at = 1; at <= 50; at++) {
    await database.commit([put(at, 2_000_000)])
    expect(await database.reader.all<{ at: number }>(readProbe)).toEqual([{ at }])
  }
  const text = "select 1 as a, 2 as a, null as n, 1.5 as f, 'ü' as t, x'01' as b"
  const beside = await ask(database, text)
  const own = await database.client.execute(text)
  expect(beside.columns).toEqual(own.columns)
  expect(beside.rows.map((row) => Array.from(row))).toEqual(own.rows.map((row) => Array.from(row)))
  expect(beside.rows.map((row) => ({ ...row }))).toEqual(own.rows.map((row) => ({ ...row })))
  await database.close()
})

test('an error of a statement is the one of the client, and the next read succeeds', async () => {
  const database = await open()
  await fill(database)
  const failing = "select json('{') from write_probe"
  const own = await errorOf(database.client.execute(failing))
  expect(own).toMatchObject({ code: 'SQLITE_ERROR', message: expect.stringContaining('malformed JSON') })
  expect(await errorOf(ask(database, failing))).toEqual(own)
  expect(await database.reader.all<{ at: number }>(readProbe)).toEqual([{ at: 0 }])
  await database.close()
})

test('the second connection does not write', async () => {
  const database = await open()
  await fill(database)
  expect(await errorOf(database.reader.run(written))).toMatchObject({ code: 'SQLITE_READONLY' })
  await database.close()
})

test('commits go on while a read takes long', async () => {
  const database = await open()
  await fill(database)
  const counting =
    'with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000000) select count(*) as c from n'
  const reading = database.reader.all(counting)
  let isOver = false
  void reading.then(() => {
    isOver = true
  })
  let during = 0
  for (; !isOver; during++) {
    await database.commit([put(during)])
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(await reading).toEqual([{ c: 3_000_000 }])
  expect(during).toBeGreaterThan(3)
  expect(database.readingMilliseconds()).toBe(0)
  await database.close()
})

test('a small file is read without a thread', async () => {
  const database = await open()
  await database.commit([put(0)])
  // The second connection would refuse it.
  await database.reader.run(written)
  expect(await database.reader.all<{ at: number }>(readProbe)).toEqual([{ at: 9 }])
  await database.close()
})

test('closing ends the thread and leaves no log', async () => {
  const database = await open()
  await fill(database)
  await database.reader.all(readProbe)
  await database.close()
  expect(statSync(`${database.path}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0)
  const again = await openDatabase({ path: database.path, create: false, synchronous: 'normal' })
  expect('refused' in again).toBe(false)
  if (!('refused' in again)) await again.close()
})

/** A small database with a log and a reader. */
async function withReader(path = newPath()) {
  const client = connect(path)
  await client.execute('pragma journal_mode = wal')
  await client.execute('pragma wal_autocheckpoint = 0')
  await client.execute('create table t (a)')
  const reader = createReader(path, { onStart: async () => {}, onEnded: () => {} })
  const close = async () => {
    await reader.close()
    client.close()
  }
  return { client, reader, close }
}

const commit = (client: Client, count = 1) =>
  client.batch(
    Array.from({ length: count }, () => 'insert into t values (randomblob(10))'),
    'write',
  )

test('a checkpoint runs only if something was committed since the last one', async () => {
  const { client, reader, close } = await withReader()
  // It does not know what is copied when it opens.
  expect(await reader.checkpoint(false)).toBeUndefined()
  expect((await reader.checkpoint(true))?.copied).toBeGreaterThan(0)
  await commit(client)
  const first = await reader.checkpoint(false)
  expect(first?.copied).toBe(first?.pages)
  expect(await reader.checkpoint(false)).toBeUndefined()
  // A commit that changes nothing adds nothing to the log.
  await client.batch(['delete from t where false'], 'write')
  expect(await reader.checkpoint(false)).toBeUndefined()
  // The next one starts the log over.
  await commit(client)
  const second = await reader.checkpoint(false)
  expect(second?.pages).toBe(1)
  expect(second?.copied).toBe(second?.pages)
  await close()
})

test('once there is a reader, the first connection runs no checkpoint', async () => {
  const database = await open()
  const pagesByCommits = async () => Number((await database.client.execute('pragma wal_autocheckpoint')).rows[0]?.[0])
  expect(await pagesByCommits()).toBe(4_096)
  await fill(database)
  await database.reader.all(readProbe)
  expect(await pagesByCommits()).toBe(0)
  const release = await database.holdCheckpoints()
  await release()
  expect(await pagesByCommits()).toBe(0)
  await database.close()
})

test('a change of many megabytes leaves its checkpoint to the reader, and a small one does not start it', async () => {
  const database = await open()
  const pagesByCommits = async () => Number((await database.client.execute('pragma wal_autocheckpoint')).rows[0]?.[0])
  const name = (text: string) => ({ sql: 'update write_probe set at = length(?)', args: [text] })
  await database.commitInSlices([put(0), name('x')])
  expect(await pagesByCommits()).toBe(4_096)
  await database.commitInSlices([name('x'.repeat(5_000_000)), name('x')])
  expect(await pagesByCommits()).toBe(0)
  await database.close()
})

test('while checkpoints are held, none runs', async () => {
  const database = await open()
  await fill(database)
  const sizeOf = () => statSync(database.path).size
  const before = sizeOf()
  const release = await database.holdCheckpoints()
  await database.checkpoint(true)
  await database.checkpoint(false)
  expect(sizeOf()).toBe(before)
  await release()
  await database.checkpoint(true)
  expect(sizeOf()).toBeGreaterThan(before)
  await database.close()
})

test('commits wait while a long log is copied to its end, so that it starts over', async () => {
  const asked: ((pages: number) => void)[] = []
  const checkpoint = () =>
    new Promise<{ pages: number; copied: number }>((resolve) =>
      asked.push((pages) => resolve({ pages, copied: pages })),
    )
  const reader = { read: async () => undefined, checkpoint, isOpen: () => true, isUsable: () => true }
  const { client, close } = await withReader()
  const more = { readingSince: () => undefined, close: async () => true }
  const checkpoints = createCheckpoints(client, { ...reader, ...more })
  const add = { sql: 'insert into t values (1)', args: [] }
  const done: string[] = []
  const note = (what: string) => () => void done.push(what)
  const short = checkpoints.run(true).then(note('short'))
  await client.commit([add])
  note('beside it')()
  asked.shift()?.(6_144)
  await short
  expect({ asked: asked.length, done }).toEqual({ asked: 0, done: ['beside it', 'short'] })

  const long = checkpoints.run(true).then(note('long'))
  asked.shift()?.(6_145)
  await until('the second checkpoint', () => asked.length === 1)
  const commits = [client.commit([add]), client.commitInSlices([add])].map((commit) => commit?.then(note('after')))
  expect((await client.execute('select count(*) as n from t')).rows[0]?.n).toBe(1)
  done.length = 0
  asked.shift()?.(6_200)
  await Promise.all([long, ...commits])
  expect(done.filter((what) => what === 'after')).toHaveLength(2)
  await close()
})

test('under steady commits, the log starts over again and again', async () => {
  const database = await open()
  let highest = 0
  let isOver = false
  const committing = (async () => {
    for (let at = 0; !isOver; at++) {
      await database.commit([put(at, 400_000)])
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  // Ten times what the log may hold.
  for (let round = 0; round < 40; round++) {
    await database.checkpoint(true)
    highest = Math.max(highest, statSync(`${database.path}-wal`).size)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  isOver = true
  await committing
  expect(highest).toBeLessThan(64 * 1024 * 1024)
  expect(await database.reader.all<{ ok: string }>('select integrity_check as ok from pragma_integrity_check')).toEqual(
    [{ ok: 'ok' }],
  )
  await database.close()
}, 60_000)

/** A thread that reports what it is asked and ends itself when a statement says so. */
function brokenThread(name: string, source: string): string {
  const path = join(folder.path, name)
  writeFileSync(path, `import { parentPort } from 'node:worker_threads'\n${source}`)
  return path
}

test('a thread that ends is replaced, and the read that it lost is repeated once', async () => {
  const module = brokenThread(
    'ends.mjs',
    `let reads = 0
    parentPort.on('message', (asked) => {
      if (asked === 'close') { parentPort.postMessage('closed'); parentPort.close() }
      else if (asked.read.sql === 'end' || (asked.read.sql === 'end later' && ++reads > 0)) process.exit(1)
      else parentPort.postMessage({ columns: ['a'], rows: [[asked.read.sql]] })
    })`,
  )
  const ended: boolean[] = []
  let starts = 0
  const onStart = async () => {
    starts += 1
  }
  const reader = createReader('unused', { onStart, onEnded: (_, isHopeless) => void ended.push(isHopeless), module })
  const read = async (sql: string) => (await reader.read({ sql, args: [] }))?.rows[0]?.a
  expect(await read('one')).toBe('one')
  const [lost, next] = [read('end'), read('two')]
  await expect(lost).rejects.toThrow('The thread that reads the database has ended')
  expect(await next).toBe('two')
  expect({ starts, ended }).toEqual({ starts: 3, ended: [false, false] })
  expect(await reader.close()).toBe(true)
  expect(await reader.read({ sql: 'three', args: [] })).toBeUndefined()
})

test('where no thread can start, the first connection reads and runs the checkpoints', async () => {
  const reasons: boolean[] = []
  const module = brokenThread('fails.mjs', 'process.exit(1)')
  const reader = createReader('unused', {
    onStart: async () => {},
    onEnded: (_, isHopeless) => void reasons.push(isHopeless),
    module,
  })
  expect(await reader.read({ sql: endless, args: [] })).toBeUndefined()
  expect(reasons).toEqual([true])
  expect(reader.isUsable()).toBe(false)
  expect(await reader.read({ sql: endless, args: [] })).toBeUndefined()
})
