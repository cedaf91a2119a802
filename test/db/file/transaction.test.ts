// A long commit runs in slices: other work of the event loop comes in between, and nothing else sees or joins its transaction.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { type ConnectedClient, connect } from '../../../db/file/connection.ts'
import { temporaryFolder } from '../../support/latchkey.ts'
import { rejectionOf } from '../../support/rejection.ts'

let folder: ReturnType<typeof temporaryFolder>
let client: ConnectedClient

beforeEach(async () => {
  folder = temporaryFolder()
  // Every statement is a slice.
  client = connect(join(folder.path, 'slices.db'), { sliceMilliseconds: 0 })
  await client.execute('pragma journal_mode = wal')
  await client.execute('create table rows (id integer primary key, name text not null unique) strict')
})
afterEach(() => {
  client.close()
  folder.remove()
})

const insert = (name: string) => ({ sql: 'insert into rows (name) values (?)', args: [name] })
const names = async () => (await client.execute('select name from rows order by id')).rows.map(({ name }) => name)
const long = (name: string, count = 10) =>
  client.commitInSlices(Array.from({ length: count }, (_, index) => insert(`${name} ${index}`)))

/** A long commit that has given way, and has more to do. */
async function begin(name = 'long'): Promise<{ committed: Promise<void>; isOver: () => boolean }> {
  let isOver = false
  const committed = long(name).finally(() => {
    isOver = true
  })
  await setImmediate()
  await setImmediate()
  return { committed, isOver: () => isOver }
}

test('other work of the event loop comes in between', async () => {
  const { committed, isOver } = await begin()
  let turns = 0
  for (; !isOver(); turns++) await setImmediate()
  expect(turns).toBeGreaterThanOrEqual(6)
  await committed
  expect(await names()).toHaveLength(10)
})

test('reads, batches and commits that are asked for meanwhile come after it', async () => {
  const { committed, isOver } = await begin()
  const read = names()
  const commit = client.commit([insert('commit')])
  const batch = client.batch([insert('batch')], 'write')
  const second = long('second')
  expect(isOver()).toBe(false)
  expect((await read).slice(0, 10)).toEqual(Array.from({ length: 10 }, (_, index) => `long ${index}`))
  await Promise.all([committed, commit, batch, second])
  const found = await names()
  expect(found.slice(0, 10)).toEqual(Array.from({ length: 10 }, (_, index) => `long ${index}`))
  expect(found.slice(10, 12).toSorted()).toEqual(['batch', 'commit'])
  expect(found.slice(12)).toEqual(Array.from({ length: 10 }, (_, index) => `second ${index}`))
})

test('a call that was asked for in the same turn before it is no part of it', async () => {
  const read = names()
  const batch = client.batch([insert('batch')], 'write')
  const committed = long('long')
  expect(await read).toEqual([])
  await Promise.all([batch, committed])
  expect((await names())[0]).toBe('batch')
})

test('one that fails leaves nothing, has the error of the client, and what waits for it succeeds', async () => {
  await client.commit([insert('taken')])
  const failing = client.commitInSlices([insert('one'), insert('two'), insert('taken'), insert('three')])
  failing.catch(() => {})
  await setImmediate()
  await setImmediate()
  const commit = client.commit([insert('after')])
  expect(await rejectionOf(failing)).toMatchObject({ name: 'LibsqlError', code: 'SQLITE_CONSTRAINT' })
  await commit
  expect(await names()).toEqual(['taken', 'after'])
  const bad = client.commitInSlices([insert('x'), insert(undefined as never)])
  expect(String(await rejectionOf(bad))).toContain('cannot be stored')
  expect(await names()).toEqual(['taken', 'after'])
})

test('a statement alone commits all its rows or none, and what comes after a failure is no part of it', async () => {
  const both = { sql: 'insert into rows (name) values (?), (?)', args: ['one', 'two'] }
  await client.commit([insert('one')])
  expect(await rejectionOf(() => client.commit([both]))).toMatchObject({ code: 'SQLITE_CONSTRAINT' })
  expect(await names()).toEqual(['one'])
  await client.commit([insert('two')])
  const other = connect(join(folder.path, 'slices.db'))
  expect((await other.execute('select name from rows order by id')).rows.map(({ name }) => name)).toEqual([
    'one',
    'two',
  ])
  other.close()
})

test('one whose connection is closed fails, and so does everything after it', async () => {
  const { committed } = await begin()
  committed.catch(() => {})
  client.close()
  expect(String(await rejectionOf(committed))).toContain('closed during a commit')
  expect(() => client.commit([insert('after')])).toThrow('closed')
  await expect(client.execute('select 1')).rejects.toThrow('closed')
})

test('work without commits begins after the one that runs, and holds those that come, but no reads', async () => {
  const { committed } = await begin()
  const gate = Promise.withResolvers<void>()
  let found: unknown[] = []
  const work = client.withoutCommits(async () => {
    found = await names()
    await gate.promise
    return 'done'
  })
  await committed
  const waiting = [client.commit([insert('commit')]), long('second')]
  for (let turn = 0; turn < 5; turn++) await setImmediate()
  expect(await names()).toHaveLength(10)
  gate.resolve()
  expect(await work).toBe('done')
  expect(found).toHaveLength(10)
  await Promise.all(waiting)
  expect(await names()).toHaveLength(21)
  await expect(client.withoutCommits(() => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  await client.commit([insert('after a failure')])
})

test('whatever is asked for in whatever order, every read finds whole commits alone', async () => {
  const call = fc.record({
    kind: fc.constantFrom('commit', 'commitInSlices', 'batch', 'read', 'hold'),
    turns: fc.integer({ min: 0, max: 2 }),
    rows: fc.integer({ min: 1, max: 5 }),
  })
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.array(call, { maxLength: 25 }), async (calls) => {
      run += 1
      await client.execute('delete from rows')
      const done: Promise<unknown>[] = []
      let expected = 0
      for (const [index, { kind, turns, rows }] of calls.entries()) {
        for (let turn = 0; turn < turns; turn++) await setImmediate()
        const own = Array.from({ length: rows }, (_, row) => insert(`${run} ${index} ${rows} ${row}`))
        if (kind === 'read') done.push(names().then(expectWhole))
        else if (kind === 'hold') done.push(client.withoutCommits(() => setImmediate()))
        else {
          expected += rows
          done.push(kind === 'batch' ? client.batch(own, 'write') : Promise.resolve(client[kind](own)))
        }
      }
      await Promise.all(done)
      expect(await names()).toHaveLength(expected)
    }),
    { numRuns: 100 },
  )
})

/** Rows of a commit say how many it has. */
function expectWhole(found: unknown[]): void {
  const commits = Map.groupBy(found as string[], (name) => name.split(' ').slice(0, 3).join(' '))
  for (const [name, rows] of commits) expect(rows).toHaveLength(Number(name.split(' ')[2]))
}
