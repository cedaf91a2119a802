// The stand-in for a libSQL server, checked with the real client: what the client relies on must hold for the stand-in.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { LibsqlError } from '@libsql/client'
import { createClient } from '@libsql/client/http'
import { migrations } from '../../../db/schema/migrate.ts'
import { type HranaServer, startHranaServer } from '../../support/hrana-server.ts'
import { temporaryFolder } from '../../support/latchkey.ts'
import { rejectionOf } from '../../support/rejection.ts'

let server: HranaServer
const folder = temporaryFolder()
const open = () => createClient({ url: server.url, authToken: 'secret' })

beforeAll(async () => {
  server = await startHranaServer({ protocol: 'hrana', path: join(folder.path, 'server.db'), token: 'secret' })
})
afterAll(async () => {
  await server.close()
  folder.remove()
})

test('a value of each type comes back as it was sent', async () => {
  const args = [null, 7, 2.5, 'text', new Uint8Array([1, 2]).buffer, Number.MAX_SAFE_INTEGER]
  const { rows, columns } = await open().execute({ sql: 'select ? a, ? b, ? c, ? d, ? e, ? f', args })
  expect(columns).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
  expect(Array.from(rows[0] ?? [])).toEqual(args)
})

describe('a batch', () => {
  test('that fails leaves nothing, and reports the code and text of SQLite', async () => {
    const client = open()
    await client.execute('create table one (id text primary key)')
    const insert = { sql: 'insert into one values (?)', args: ['x'] }
    const failure = await client.batch([insert, insert], 'write').catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'SQLITE_CONSTRAINT' })
    expect(String(failure)).toContain('UNIQUE constraint failed: one.id')
    expect((await client.execute('select count(*) as n from one')).rows[0]?.n).toBe(0)
    const [, result] = await client.batch([insert, 'select id from one'], 'write')
    expect(result?.rows[0]?.id).toBe('x')
  })

  test('is one request', async () => {
    const client = open()
    await client.execute('select 1')
    const before = server.counts.pipelines
    await client.batch(['select 1', 'select 2', 'select 2'], 'read')
    expect(server.counts.pipelines).toBe(before + 1)
  })
})

test('an interactive transaction keeps its connection between requests', async () => {
  const client = open()
  await client.executeMultiple('create table two (n integer); insert into two values (1)')
  const transaction = await client.transaction('write')
  await transaction.execute('update two set n = 2')
  expect((await client.execute('select n from two')).rows[0]?.n).toBe(1)
  await transaction.commit()
  expect((await client.execute('select n from two')).rows[0]?.n).toBe(2)
})

test('a connection that is cut before the work leaves nothing, after the work everything', async () => {
  const client = open()
  await client.execute('create table three (n integer)')
  for (const cut of ['before', 'after'] as const) {
    server.trouble.cuts.push(cut)
    const write = client.batch([{ sql: 'insert into three values (1)', args: [] }], 'write')
    expect(await write.then(String, () => 'lost')).toBe('lost')
    const { rows } = await client.execute('select count(*) as n from three')
    expect(rows[0]?.n).toBe(cut === 'before' ? 0 : 1)
  }
})

test('another token is refused', async () => {
  const client = createClient({ url: server.url, authToken: 'other' })
  await expect(client.execute('select 1')).rejects.toThrow('401')
})

test('an error has the code and text of a real server', async () => {
  const client = open()
  await client.execute('create table four (n integer unique)')
  const failureOf = async (sql: string) => {
    const { code, message } = (await rejectionOf(client.execute(sql))) as LibsqlError
    return [code, message.replace(/^\w+: /, '').replace(/(syntax error).*/, '$1')]
  }
  expect(await failureOf("select json('stale')")).toEqual(['SQLITE_UNKNOWN', 'SQLite error: malformed JSON'])
  expect(await failureOf('select * from missing')).toEqual(['SQLITE_UNKNOWN', 'SQLite error: no such table: missing'])
  expect(await failureOf('select missing from four')).toEqual([
    'SQL_INPUT_ERROR',
    'SQL input error: no such column: missing (at offset 7)',
  ])
  expect((await failureOf('selec'))[0]).toBe('SQL_PARSE_ERROR')
})

test('a value over 5 MB and a response over 10 MB are refused', async () => {
  const client = open()
  const textOf = (bytes: number) => ({ sql: "select replace(hex(zeroblob(?)), '0', 'x') as text", args: [bytes / 2] })
  expect((await client.execute(textOf(4_900_000))).rows[0]?.text).toHaveLength(4_900_000)
  expect(await rejectionOf(client.execute(textOf(5_100_000)))).toMatchObject({ code: 'SQLITE_TOOBIG' })
  const args = ['x'.repeat(5_100_000)]
  expect(await rejectionOf(client.execute({ sql: 'select length(?)', args }))).toMatchObject({ code: 'ARGS_INVALID' })
  const times = (values: string) => ({ ...textOf(4_000_000), sql: `${textOf(0).sql} from (values ${values})` })
  expect((await client.execute(times('(1), (2)'))).rows).toHaveLength(2)
  expect(await rejectionOf(client.execute(times('(1), (2), (3)')))).toMatchObject({ code: 'RESPONSE_TOO_LARGE' })
})

test('only an insert reports rows and a row number', async () => {
  const client = open()
  await client.execute('create table five (n integer primary key)')
  const inserted = await client.execute('insert into five values (7)')
  expect([inserted.rowsAffected, inserted.lastInsertRowid]).toEqual([1, 7n])
  const read = await client.execute('select * from five')
  expect([read.rowsAffected, read.lastInsertRowid]).toEqual([0, undefined])
})

test('the migrations of the product run on it', async () => {
  const client = open()
  for (const { statements } of migrations) await client.batch(statements, 'write')
  const { rows } = await client.execute("select count(*) as n from sqlite_master where type = 'trigger'")
  expect(rows[0]?.n).toBeGreaterThan(5)
})
