// What a starting node reads while other nodes go on changing the database and spending.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { SQL } from 'drizzle-orm'
import { insertApiKey } from '../../db/tables/api-keys.ts'
import { createWriter } from '../../db/write/write.ts'
import { loadOrRefuse, openConfigured } from '../../src/nodes/load.ts'
import { loadSpending } from '../../src/nodes/load-spending.ts'
import type { Row, TestServer } from '../support/latchkey.ts'
import { type Nodes, startNodes } from '../support/nodes.ts'
import { rejectionOf } from '../support/rejection.ts'
import { createDatabase, insertOrganizationRows, organizationRows, usageRow } from '../support/rows.ts'

let cluster: Nodes
beforeAll(async () => {
  cluster = await startNodes(1)
})
afterAll(() => cluster.stop())

test('a node that starts obeys what changes before and after its first refresh', async () => {
  const [other] = cluster.nodes as [TestServer]
  const create = (name: string) => other.admin<Row>('keys.create', { name })
  const disable = (name: string) => other.admin('keys.update', { key: name, disabled: true })
  const keys = [await create('before'), await create('after'), await create('untouched')]
  const database = await openConfigured(other.config, false)
  if ('refused' in database || database.shared === undefined) throw new Error('The database is on a server')
  const { shared } = database
  const { refresh } = shared
  shared.refresh = async (position) => {
    shared.refresh = refresh
    await disable('before')
    const seen = await refresh(position)
    await disable('after')
    return seen
  }
  const { registry, follow } = await loadOrRefuse(database, other.config, {
    now: Date.now,
    monotonic: () => performance.now(),
    onRefresh: () => {},
    onReplaced: (error) => {
      throw error
    },
  })
  await follow.fresh()
  expect(keys.map(({ id }) => registry.keys.get(id)?.disabled)).toEqual([true, true, false])
  await database.close()
})

test('a node that starts counts each row once that another node writes between two slices of its totals', async () => {
  const own = await createDatabase()
  const { database } = own
  const acme = organizationRows('acme')
  const writer = createWriter(database, () => {})
  const names = Array.from({ length: 1_200 }, (_, index) => `key-${String(index).padStart(4, '0')}`)
  const keyRow = (id: string) => ({ ...acme.key, id, name: id, hash: id.padEnd(64, '0') })
  await writer.write([
    ...insertOrganizationRows(database, acme),
    ...names.map((id) => insertApiKey(database.orm, keyRow(id))),
  ])
  const spend = async (keyId: string, cost: number) =>
    writer.appendUsage({ ...usageRow(crypto.randomUUID(), acme), keyId, costNanodollars: cost })
  await Promise.all(names.map((name) => spend(name, 1)))
  // Of the first slice, of the second, of the third, and behind it.
  const watched = ['key-0000', 'key-0700', 'key-1199']
  let slices = 0
  const all = async (query: SQL) => {
    const rows = await database.orm.all(query)
    slices += 1
    for (const name of watched) await spend(name, 10 ** slices)
    return rows
  }
  const { spending, usageId } = await loadSpending(Object.assign(Object.create(database.orm), { all }), Date.now())
  expect(slices).toBeGreaterThan(2)
  const sum = Array.from({ length: slices + 1 }, (_, index) => 10 ** index).reduce((one, other) => one + other)
  expect(watched.map((name) => spending.of(name, Date.now()).ever)).toEqual(watched.map(() => sum))
  expect(spending.of('key-0001', Date.now()).ever).toBe(1)
  expect(usageId).toBe(names.length + slices * watched.length)
  await writer.close()
  await own.close()
})

test('a database that lacks a table is refused with what it lacks, and not called damaged', async () => {
  const { database, close } = await createDatabase()
  await database.commit([{ sql: 'drop table bundle_signers', args: [] }])
  const { message } = await rejectionOf(
    loadOrRefuse(
      { ...database, close: async () => {} },
      { ...cluster.nodes[0]?.config, upstreamUrl: undefined } as Parameters<typeof loadOrRefuse>[1],
      { now: Date.now, monotonic: () => performance.now(), onRefresh: () => {}, onReplaced: () => {} },
    ),
  )
  expect(message).toMatch(/ cannot be read: .*no such table: bundle_signers$/)
  expect(message).not.toContain('damaged')
  await close()
})
