import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { InValue, LibsqlError } from '@libsql/client'
import Libsql from 'libsql'
import { type ConnectedClient, connect } from '../../../db/file/connection.ts'
import { temporaryFolder } from '../../support/latchkey.ts'
import { rejectionOf } from '../../support/rejection.ts'

let folder: ReturnType<typeof temporaryFolder>
let path: string
let client: ConnectedClient

beforeEach(async () => {
  folder = temporaryFolder()
  path = join(folder.path, 'kept # 100%?.db')
  client = connect(path)
  await client.execute('pragma journal_mode = wal')
  await client.execute('create table rows (id integer primary key, name text not null unique) strict')
})
afterEach(() => {
  client.close()
  folder.remove()
})

const insert = (name: string | null) => ({ sql: 'insert into rows (name) values (?)', args: [name] })
const names = async () => (await client.execute('select name from rows order by id')).rows.map(({ name }) => name)

describe('a statement', () => {
  test('is prepared once, however often it is run', async () => {
    const prepare = spyOn(Libsql.prototype, 'prepare')
    const own = connect(join(folder.path, 'other.db'))
    await own.execute('create table rows (id integer primary key, name text)')
    for (let index = 0; index < 20; index++) await own.batch([insert(`row ${index}`)], 'write')
    const sources = prepare.mock.calls.map(([source]) => source)
    prepare.mockRestore()
    own.close()
    expect(sources.filter((source) => source.startsWith('insert'))).toHaveLength(1)
    expect(sources.filter((source) => source === 'COMMIT')).toHaveLength(1)
  })

  test('that failed can be run again, and leaves nothing of its batch', async () => {
    await client.batch([insert('one')], 'write')
    for (const bad of [insert('one'), insert(null)])
      await expect(client.batch([insert('two'), bad], 'write')).rejects.toThrow('constraint failed')
    expect(await names()).toEqual(['one'])
    await client.batch([insert('two')], 'write')
    expect(await names()).toEqual(['one', 'two'])
  })

  test('returns what the schema has after a change of it', async () => {
    await client.batch([insert('one')], 'write')
    expect((await client.execute('select * from rows')).columns).toEqual(['id', 'name'])
    await client.execute("alter table rows add column state text not null default 'new'")
    const { columns, rows } = await client.execute('select * from rows')
    expect(columns).toEqual(['id', 'name', 'state'])
    expect({ ...rows[0] }).toEqual({ id: 1, name: 'one', state: 'new' })
  })

  test('returns the rows of its own arguments, of every type', async () => {
    const read = (value: string | number | null) =>
      client.execute({ sql: 'select ? as value, typeof(?) as type', args: [value, value] })
    for (const [value, type] of [
      ['text', 'text'],
      [7, 'real'],
      [null, 'null'],
      ['', 'text'],
    ] as const)
      expect({ ...(await read(value)).rows[0] }).toEqual({ value, type })
  })

  test('says how many rows it changed', async () => {
    expect((await client.batch([insert('one'), insert('two')], 'write')).map((result) => result.rowsAffected)).toEqual([
      1, 1,
    ])
    expect((await client.execute('delete from rows')).rowsAffected).toBe(2)
    expect((await client.execute('delete from rows')).rowsAffected).toBe(0)
  })
})

describe('a commit', () => {
  test('stores all of its statements in order, beside batches and reads', async () => {
    for (let index = 0; index < 3; index++) {
      await client.commit([insert(`commit ${index}`), insert(`more ${index}`)])
      await client.batch([insert(`batch ${index}`)], 'write')
      expect((await names()).slice(-3)).toEqual([`commit ${index}`, `more ${index}`, `batch ${index}`])
    }
  })

  test('with a statement that fails stores nothing, has the codes of the client, and leaves no transaction open', async () => {
    await client.commit([insert('one')])
    const taken = [insert('two'), insert('one')]
    const ofClient = await client.batch(taken, 'write').catch((error: unknown) => error)
    const { code, extendedCode } = ofClient as LibsqlError
    const message = 'SQLITE_CONSTRAINT: UNIQUE constraint failed: rows.name'
    expect(await rejectionOf(() => client.commit(taken))).toMatchObject({
      name: 'LibsqlError',
      message,
      code,
      extendedCode,
    })
    await client.commit([insert('three')])
    expect(await names()).toEqual(['one', 'three'])
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY, undefined])('with the value %p stores nothing', async (value) => {
    const bad = { sql: 'insert into rows (name) values (?)', args: [value as InValue] }
    expect(String(await rejectionOf(() => client.commit([insert('one'), bad])))).toContain('cannot be stored')
    expect(await names()).toEqual([])
  })
})

test('more statements than are kept work, the first of them too', async () => {
  const values = async (from: number) => {
    const read: unknown[] = []
    for (let index = from; index < from + 400; index++)
      read.push((await client.execute(`select ${index} as value`)).rows[0]?.value)
    return read
  }
  const expected = Array.from({ length: 400 }, (_, index) => index)
  expect(await values(0)).toEqual(expected)
  expect(await values(0)).toEqual(expected)
})

test('calls that come at once each get their own result', async () => {
  const count = 200
  await Promise.all(Array.from({ length: count }, (_, index) => client.batch([insert(`row ${index}`)], 'write')))
  const read = (id: number) => client.execute({ sql: 'select name from rows where id = ?', args: [id] })
  const found = await Promise.all(Array.from({ length: count }, (_, index) => read(index + 1)))
  expect(found.map(({ rows }) => rows[0]?.name)).toEqual(Array.from({ length: count }, (_, index) => `row ${index}`))
})

test('no kept statement holds up a checkpoint', async () => {
  for (let index = 0; index < 50; index++) {
    await client.batch([insert(`row ${index}`)], 'write')
    await names()
  }
  await expect(client.batch([insert('row 0')], 'write')).rejects.toThrow('UNIQUE')
  expect({ ...(await client.execute('pragma wal_checkpoint(truncate)')).rows[0] }).toMatchObject({ busy: 0 })
  expect(statSync(`${path}-wal`).size).toBe(0)
})

test('a closed one refuses every call', async () => {
  await client.batch([insert('one')], 'write')
  client.close()
  await expect(client.batch([insert('two')], 'write')).rejects.toThrow('closed')
  await expect(client.execute('select 1')).rejects.toThrow('closed')
  expect(() => client.commit([insert('two')])).toThrow('closed')
})
