// Entries of the audit log are read whole, also where a response holds few of them, and where many in a row were pruned.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Client, createClient } from '@libsql/client'
import { LibsqlError } from '@libsql/core/api'
import { createOrm, type Orm } from '../../../db/file/open.ts'
import { leavesSince } from '../../../db/tables/audit-log.ts'
import { readEntries } from '../../../src/audit-log/tree.ts'

const leaves = [0, 1, 2, 3, 4, 2_000, 2_001]
let client: Client
let orm: Orm
beforeAll(async () => {
  client = createClient({ url: ':memory:' })
  await client.executeMultiple(`
    create table log_entries (leaf integer primary key, kind integer, ref integer, at integer, salt blob, commitment blob);
    create table log_positions (source text primary key, ref integer);`)
  const sql = 'insert into log_entries select value, 1, value + 1, 0, null, zeroblob(32) from json_each(?)'
  await client.execute({ sql, args: [JSON.stringify(leaves)] })
  orm = createOrm(client)
})
afterAll(() => client.close())

/** A database server that refuses responses of more than a few entries. */
function smallResponses(): Orm {
  const all: Orm['all'] = (async (query: Parameters<Orm['all']>[0]) => {
    const rows = await orm.all(query)
    if (JSON.stringify(rows).length > 200) throw new LibsqlError('too large', 'RESPONSE_TOO_LARGE')
    return rows
  }) as never
  return new Proxy(orm, { get: (target, name) => (name === 'all' ? all : Reflect.get(target, name)) })
}

test('as many at a time as fit', async () => {
  const read = await readEntries(smallResponses(), 0, 2_002)
  expect(read.map(({ leaf }) => leaf)).toEqual(leaves)
})

test('those after many that were pruned', async () => {
  const found = await Array.fromAsync(leavesSince(orm, [1], 3))
  expect(found.map(({ leaf }) => leaf)).toEqual([2, 3, 4, 2_000, 2_001])
})
