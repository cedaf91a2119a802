// The one writing function: whole batches, ledger rows that share a commit and are answered after it, and what a failure leaves.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { findDrift } from '../../../db/read/usage-totals.ts'
import { usage } from '../../../db/schema/record-schema.ts'
import { insertOrganization } from '../../../db/tables/organizations.ts'
import { listSpentDays, listUsage, type UnpackedDays } from '../../../db/tables/usage.ts'
import { insertion, insertRows } from '../../../db/write/rows.ts'
import { addUsageSums } from '../../../db/write/usage-sums.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import { loadSpending } from '../../../src/nodes/load-spending.ts'
import { busyError, type Watched, watchBatches } from '../../support/batches.ts'
import { readDatabaseFile, rowsInFile } from '../../support/database-file.ts'
import {
  auditRow,
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../../support/rows.ts'
import { isServerKind } from '../../support/server-kind.ts'

const acme = organizationRows('acme')
const badUsage = usageRow('bad', { ...acme, key: { ...acme.key, id: 'missing' } })

let own: TestDatabase
let watched: Watched
let writer: Writer
let broken: unknown[]
beforeEach(async () => {
  own = await createDatabase()
  watched = watchBatches(own.database)
  broken = []
  writer = createWriter(watched.database, (error) => broken.push(error))
  await writer.write(insertOrganizationRows(own.database, acme))
  watched.batches.length = 0
})
afterEach(async () => {
  await writer.close()
  await own.close()
})

/** The request ids of a ledger in the order of its rows, as the file on disk has them now. */
function idsInFile(ledger: 'exchange_audit' | 'usage'): unknown[] {
  return rowsInFile(own.path, `select request_id from ${ledger} order by id`).map((row) => row.request_id)
}

function organization(name: string) {
  return insertOrganization(own.database.orm, { ...acme.organization, id: name, name })
}

test('a batch is committed as a whole, in order', async () => {
  await writer.write([organization('one'), organization('two'), organization('three')])
  expect(watched.batches).toEqual([3])
  const names = rowsInFile(own.path, 'select name from organizations order by rowid').map((row) => row.name)
  expect(names).toEqual(['acme', 'one', 'two', 'three'])
})

test('a batch with one bad statement leaves nothing behind, and later writes are really in the file', async () => {
  await expect(writer.write([organization('one'), organization('acme'), organization('two')])).rejects.toThrow('UNIQUE')
  await writer.write([organization('three')])
  const names = rowsInFile(own.path, 'select name from organizations order by rowid').map((row) => row.name)
  expect(names).toEqual(['acme', 'three'])
  expect(broken).toEqual([])
})

test('ledger rows of one turn of the event loop share one commit', async () => {
  const rows = [
    ...['a', 'b', 'c'].map((id) => writer.appendAudit(auditRow(id))),
    ...['d', 'e'].map((id) => writer.appendUsage(usageRow(id, acme))),
  ]
  expect(watched.batches).toEqual([])
  await Promise.all(rows)
  // The exchanges, the usage, the totals by day and by hour, and which rows they include.
  expect(watched.batches).toEqual([5])
  await writer.appendUsage(usageRow('f', acme))
  expect(watched.batches).toEqual([5, 1])
  expect(idsInFile('exchange_audit')).toEqual(['a', 'b', 'c'])
  expect(idsInFile('usage')).toEqual(['d', 'e', 'f'])
})

test('a cost beyond the whole numbers is summed up to their end, and rows that have one can be read', async () => {
  const most = Number.MAX_SAFE_INTEGER
  for (const id of ['a', 'b']) await writer.appendUsage({ ...usageRow(id, acme), costNanodollars: most * 4 })
  for (const id of ['c', 'd']) await writer.appendUsage({ ...usageRow(id, acme), at: 1e9, costNanodollars: most })
  await writer.write(addUsageSums)
  const { orm } = own.database
  const spentOf = async () =>
    (await listSpentDays(orm))
      .flatMap((rows) => rows.split('\n'))
      .flatMap((packed) => (JSON.parse(packed) as UnpackedDays)[1].map(([, cost]) => cost))
  expect(await spentOf()).toEqual([most, most])
  expect((await listUsage(orm, { limit: 9 }, (row) => row.costNanodollars)).rows).toEqual([most, most, most, most])
  expect(await findDrift(orm)).toEqual([])
  await writer.write([{ toSQL: () => ({ sql: `update day_totals set cost_nanodollars = ${2n ** 60n}`, params: [] }) }])
  expect(await spentOf()).toEqual([most, most])
})

test('a row of an older node, which adds it to its own totals, counts once', async () => {
  const { orm } = own.database
  const row = (id: string, costNanodollars: number) => ({ ...usageRow(id, acme), costNanodollars })
  const toFormer = 'insert into usage_days values (?, ?, 1, 0, 0, 0, 10)'
  const spent = async () => (await loadSpending(orm, Date.now())).spending.of(acme.key.id, Date.now()).ever
  await writer.appendUsage(row('new', 1))
  const old = row('old', 10)
  await writer.write([
    insertRows(insertion(usage), [old]),
    { toSQL: () => ({ sql: toFormer, params: [acme.key.id, Math.floor(old.at / 86_400_000)] }) },
  ])
  await writer.appendUsage(row('newer', 100))
  expect(await spent()).toBe(111)
  await writer.write(addUsageSums)
  expect(await spent()).toBe(111)
  expect(await findDrift(orm)).toEqual([])
  expect(rowsInFile(own.path, 'select sum(requests) as n from day_totals')).toEqual([{ n: 3 }])
  expect(rowsInFile(own.path, 'select sum(cost_nanodollars) as n from hour_totals')).toEqual([{ n: 111 }])
})

test('rows of different turns are committed apart', async () => {
  await writer.appendAudit(auditRow('a'))
  await writer.appendAudit(auditRow('b'))
  expect(watched.batches).toEqual([1, 1])
})

test('a row is answered after its commit and not before', async () => {
  const events: string[] = []
  watched.before = () => void events.push(`asked with ${idsInFile('exchange_audit').length} rows in the file`)
  watched.after = () => void events.push(`committed with ${idsInFile('exchange_audit').length} rows in the file`)
  await Promise.all(['a', 'b'].map((id) => writer.appendAudit(auditRow(id)).then(() => events.push(`answered ${id}`))))
  expect(events).toEqual([
    'asked with 0 rows in the file',
    'committed with 2 rows in the file',
    'answered a',
    'answered b',
  ])
})

test('a write is answered after its commit and not before', async () => {
  const events: string[] = []
  const rows = () => rowsInFile(own.path, "select id from organizations where id = 'one'").length
  watched.before = () => void events.push(`asked with ${rows()}`)
  watched.after = () => void events.push(`committed with ${rows()}`)
  await writer.write([organization('one')]).then(() => events.push('answered'))
  expect(events).toEqual(['asked with 0', 'committed with 1', 'answered'])
})

test('rows that come while a commit is held back wait for a separate commit, in order', async () => {
  const gate = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  watched.before = () => {
    asked.resolve()
    return gate.promise
  }
  const answered: string[] = []
  const append = (id: string) => writer.appendAudit(auditRow(id)).then(() => answered.push(id))
  const first = append('a')
  await asked.promise
  const later = ['b', 'c'].map(append)
  expect(answered).toEqual([])
  gate.resolve()
  await Promise.all([first, ...later])
  // A server commits those that are on their way in any order.
  const inOrder = (ids: unknown[]) => (isServerKind ? ids.toSorted() : ids)
  expect(inOrder(answered)).toEqual(['a', 'b', 'c'])
  expect(inOrder(idsInFile('exchange_audit'))).toEqual(['a', 'b', 'c'])
  expect(watched.batches).toEqual([1, 1])
})

test('ten thousand rows at once are one commit, complete and in order', async () => {
  const ids = Array.from({ length: 10_000 }, (_, index) => String(index))
  await Promise.all(ids.map((id) => writer.appendAudit(auditRow(id))))
  expect(watched.batches).toHaveLength(1)
  expect(idsInFile('exchange_audit')).toEqual(ids)
})

test('what rows share and what they do not arrives with each of them, and rows that are the same are as many', async () => {
  const spent = { ...usageRow('a', acme), model: 'one', promptTokens: 3 }
  const rows = [spent, spent, { ...spent, requestId: 'b', model: null, promptTokens: null }]
  await Promise.all(rows.map((row) => writer.appendUsage(row)))
  const found = rowsInFile(own.path, 'select request_id, model, prompt_tokens, status from usage order by id')
  const { status } = spent
  expect(found).toEqual([
    { request_id: 'a', model: 'one', prompt_tokens: 3, status },
    { request_id: 'a', model: 'one', prompt_tokens: 3, status },
    { request_id: 'b', model: null, prompt_tokens: null, status },
  ])
})

test('every column of a ledger row arrives, with absent values null and flags as numbers', async () => {
  const usage = { ...usageRow('full', acme), completed: false, model: null, accessTokenId: 'jti' }
  const audit = { ...auditRow('full'), policyId: acme.policy.id, accessTokenExpiresAt: 5 }
  await Promise.all([writer.appendUsage(usage), writer.appendAudit(audit)])
  const [usages, audits] = readDatabaseFile(own.path, 'select * from usage', 'select * from exchange_audit')
  expect(usages).toEqual([expect.objectContaining({ request_id: 'full', streamed: 1, completed: 0, model: null })])
  expect(usages).toEqual([expect.objectContaining({ access_token_id: 'jti', duration_milliseconds: 4 })])
  expect(audits).toEqual([
    expect.objectContaining({ policy_id: acme.policy.id, access_token_expires_at: 5, subject: null }),
  ])
})

test('a row that the database refuses fails alone, and later rows are really in the file', async () => {
  const rows = [
    writer.appendAudit(auditRow('a')),
    writer.appendUsage(badUsage),
    writer.appendUsage(usageRow('b', acme)),
  ]
  const outcomes = await Promise.allSettled(rows)
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(broken).toEqual([])

  await Promise.all([writer.appendAudit(auditRow('c')), writer.appendUsage(usageRow('d', acme))])
  expect(idsInFile('exchange_audit')).toEqual(['a', 'c'])
  expect(idsInFile('usage')).toEqual(['b', 'd'])
})

test('a value that the driver refuses harms no other row', async () => {
  const odd = { ...auditRow('odd'), accessTokenExpiresAt: Number.NaN }
  const rows = [writer.appendAudit(auditRow('one')), writer.appendAudit(odd), writer.appendAudit(auditRow('two'))]
  const outcomes = await Promise.allSettled(rows)
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(idsInFile('exchange_audit')).toEqual(['one', 'two'])
})

test('many failures between good writes lose nothing that was acknowledged', async () => {
  const kept: string[] = []
  for (let round = 0; round < 50; round++) {
    const good = writer.appendAudit(auditRow(`good ${round}`)).then(() => kept.push(`good ${round}`))
    await good
    await expect(writer.appendUsage(badUsage)).rejects.toThrow('FOREIGN KEY')
  }
  expect(kept).toHaveLength(50)
  expect(idsInFile('exchange_audit')).toEqual(kept)
})

test('after SQLITE_BUSY nothing is written any longer, and that is reported once', async () => {
  watched.before = () => {
    throw busyError()
  }
  const outcomes = await Promise.allSettled([
    writer.appendAudit(auditRow('a')),
    writer.appendUsage(usageRow('a', acme)),
    writer.write([organization('one')]),
    writer.write([organization('two')]),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
  expect(broken).toHaveLength(1)
  const asked = watched.batches.length

  watched.before = () => {}
  await expect(writer.write([organization('two')])).rejects.toThrow('database is locked')
  await expect(writer.appendAudit(auditRow('b'))).rejects.toThrow('database is locked')
  await expect(writer.appendUsage(usageRow('b', acme))).rejects.toThrow('database is locked')
  expect(watched.batches).toHaveLength(asked)
  expect(broken).toHaveLength(1)
  expect(idsInFile('exchange_audit')).toEqual([])
  expect(rowsInFile(own.path, 'select name from organizations')).toEqual([{ name: 'acme' }])
})

test('closing waits for rows that are still queued', async () => {
  const answered: string[] = []
  for (const id of ['a', 'b']) void writer.appendAudit(auditRow(id)).then(() => answered.push(id))
  await writer.close()
  expect(answered).toEqual(['a', 'b'])
  expect(idsInFile('exchange_audit')).toEqual(['a', 'b'])
})

test('closing waits for a commit that is under way', async () => {
  const gate = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  watched.before = () => {
    asked.resolve()
    return gate.promise
  }
  const events: string[] = []
  const row = writer.appendAudit(auditRow('a')).then(() => events.push('answered'))
  await asked.promise
  const closed = writer.close().then(() => events.push('closed'))
  gate.resolve()
  await Promise.all([row, closed])
  expect(events).toEqual(['answered', 'closed'])
})
