// Reads of many rows that are more than a libSQL server sends at once, and the copy of such rows.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { LibsqlError } from '@libsql/core/api'
import { sql } from 'drizzle-orm'
import { type Database, openDatabase } from '../../../db/file/open.ts'
import { copyTable, digestTable, hasRows, listCopiedTables } from '../../../db/read/copy-rows.ts'
import { readFitting } from '../../../db/read/fitting.ts'
import { packing } from '../../../db/read/packed-rows.ts'
import { openServerDatabase } from '../../../db/remote/server-database.ts'
import { isTooLarge } from '../../../db/remote/server-errors.ts'
import { issuerKeySets, issuers } from '../../../db/schema/schema.ts'
import { listIssuers } from '../../../db/tables/issuers.ts'
import { keeping, loadRegistry } from '../../../src/registry/registry.ts'
import { type HranaServer, startHranaServer } from '../../support/hrana-server.ts'
import { temporaryFolder } from '../../support/latchkey.ts'
import { rejectionOf } from '../../support/rejection.ts'

const folder = temporaryFolder()
/** Sixty key sets of 200 KB are 12 MB. */
const total = 60
const ids = Array.from({ length: total }, (_, index) => `issuer-${index}`)
let server: HranaServer
let database: Database

beforeAll(async () => {
  server = await startHranaServer({ path: join(folder.path, 'server.db') })
  const send = (request: Request) => fetch(request)
  const opened = await openServerDatabase({ url: server.url, token: undefined, create: true, send })
  if ('refused' in opened) throw new Error(opened.message)
  database = opened
  const { client } = database
  await client.batch(
    ["insert into organizations (id, name, plan, created_at, updated_at) values ('o', 'o', 'enterprise', 0, 0)"],
    'write',
  )
  const issuer = `insert into issuers (id, organization_id, name, issuer_url, key_source, clock_skew_seconds, keys_stale_seconds, created_at, updated_at)
    select value, 'o', value, 'https://' || value, 'discovery', 30, 0, -key, 0 from json_each(?)`
  const keySet = `insert into issuer_key_sets (issuer_id, source, jwks, fetched_at, fresh_until)
    select value, '', replace(hex(zeroblob(100000)), '0', 'x'), 0, 0 from json_each(?)`
  const args = [JSON.stringify(ids)]
  await client.batch(
    [
      { sql: issuer, args },
      { sql: keySet, args },
    ],
    'write',
  )
})
afterAll(async () => {
  await database.close()
  await server.close()
  folder.remove()
})

test('one statement cannot read them', async () => {
  const error = await rejectionOf(database.orm.select().from(issuerKeySets))
  expect(isTooLarge(error)).toBe(true)
})

test('a single row that is too large is an error, and is not read again and again', async () => {
  const read: number[] = []
  const tooLarge = new LibsqlError('too large', 'RESPONSE_TOO_LARGE')
  const reading = readFitting(3, async (rows) => {
    read.push(rows)
    throw tooLarge
  })
  expect(await rejectionOf(reading)).toBe(tooLarge as never)
  expect(read).toEqual([3, 2, 1])
})

test('issuers with large key sets are listed, by a condition and by their ids', async () => {
  const all = await listIssuers(database.orm, sql`${issuers.deletedAt} is null`)
  expect(all.map(({ id }) => id)).toEqual(ids)
  expect(all.map(({ lastKeySet }) => lastKeySet?.jwks.length)).toEqual(ids.map(() => 200_000))
  expect((await listIssuers(database.orm, ids.toReversed())).map(({ id }) => id)).toEqual(ids)
})

test('packed rows are read in the order of their row numbers', async () => {
  const packed = packing(issuerKeySets, { first: ['issuerId'] })
  const read: string[] = []
  for await (const rows of packed.read(database.orm))
    for (const text of rows.text.split('\n')) read.push(packed.unpack({ ...rows, text }).issuerId)
  expect(read).toEqual(ids)
})

test('keys and upstreams are loaded, all and by their ids', async () => {
  const key = `insert into api_keys (id, organization_id, workspace_id, owner_id, name, kind, hash, label, disabled, created_at, updated_at, allowed_models)
    select value, 'o', 'w', 'u', value, 'inference', printf('%064d', key), '', 0, key, key, ? from json_each(?)`
  const upstream = `insert into upstreams (id, name, base_url, models, priority, first_byte_seconds, idle_seconds, forward_headers, return_headers, created_at, updated_at)
    select value, value, 'https://' || value, ?, 0, 60, 60, '[]', '[]', key, key from json_each(?)`
  const args = [JSON.stringify(['x'.repeat(100_000)]), JSON.stringify(ids)]
  await database.client.batch(
    [
      "insert into workspaces (id, organization_id, name, created_at) values ('w', 'o', 'w', 0)",
      "insert into users (id, organization_id, name, created_at) values ('u', 'o', 'u', 0)",
      { sql: key, args },
      { sql: upstream, args },
    ],
    'write',
  )
  const registry = await loadRegistry(database.orm)
  expect([...registry.upstreams.keys()]).toEqual(ids)
  expect(ids.map((id) => registry.keys.get(id)?.name)).toEqual(ids)
  const rename = (table: string) => `update ${table} set name = name || ' renamed'`
  await database.client.batch([rename('api_keys'), rename('upstreams')], 'write')
  for (const kind of ['key', 'upstream'] as const) await keeping[kind].load(registry, database.orm, ids)
  const renamed = ids.map((id) => `${id} renamed`)
  expect(ids.map((id) => registry.keys.get(id)?.name)).toEqual(renamed)
  expect(ids.map((id) => registry.upstreams.get(id)?.name)).toEqual(renamed)
})

test('the rows are copied, and equal', async () => {
  const copy = await openDatabase({ path: join(folder.path, 'copy.db'), create: true, synchronous: 'normal' })
  if ('refused' in copy) throw new Error(copy.message)
  const tables = (await listCopiedTables(copy)).filter(({ name }) =>
    /^(organizations|issuers|issuer_key_sets)$/.test(name),
  )
  for (const table of tables) await copyTable(database, copy, table, () => {})
  expect(await hasRows(copy, tables)).toBe(true)
  for (const table of tables) expect(await digestTable(copy, table)).toEqual(await digestTable(database, table))
  await copy.close()
})
