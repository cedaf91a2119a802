// The totals of days: every ledger row is in one record, of several nodes one adds them, and a changed ledger is found.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { insertArchive, listArchives, markVerified, removeArchivedRows } from '../../db/tables/archives.ts'
import { insertUsageDays, lastLogRecordId, listLogRecords } from '../../db/tables/log-records.ts'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { checkUsageDays } from '../../src/audit-log/check-days.ts'
import { hashLeaf, hashNode } from '../../src/audit-log/transparency/merkle.ts'
import { createDayClosing, isClosedBy, readUsageDays, type UsageDayBody } from '../../src/audit-log/usage-days.ts'
import {
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../support/rows.ts'

const day = 24 * 60 * 60 * 1_000
const start = Date.UTC(2026, 10, 20)
const [acme, other] = [organizationRows('acme'), organizationRows('other')]

let own: TestDatabase
let writer: Writer
let now: number
beforeEach(async () => {
  own = await createDatabase()
  writer = createWriter(own.database, () => {})
  await writer.write([...insertOrganizationRows(own.database, acme), ...insertOrganizationRows(own.database, other)])
})
afterEach(async () => {
  await writer.close()
  await own.close()
})

const closing = () => createDayClosing({ database: own.database, writer, now: () => now })
const add = (at: number, of = acme, tokens = 3) =>
  writer.appendUsage({ ...usageRow(`at ${at}`, of), at, totalTokens: tokens, costNanodollars: 10 })
async function records(): Promise<UsageDayBody[]> {
  const rows = await listLogRecords(own.database.orm, 'usage_day', 0, 100)
  return rows.map(({ body }) => JSON.parse(body) as UsageDayBody)
}
/** Moves the rows before a time to a file that there is not. */
async function archive(before: number, firstRowId: number, lastRowId: number): Promise<void> {
  const { orm } = own.database
  const rows = { kind: 'usage' as const, before, firstRowId, lastRowId, rowCount: 1 + lastRowId - firstRowId }
  const planned = { ...rows, firstAt: start, lastAt: before - 1, organizations: [] }
  await writer.write([insertArchive(orm, planned, { folder: '/x', file: 'x', node: null, createdAt: now })])
  const [archive] = await listArchives(orm, { limit: 1 })
  if (archive === undefined) throw new Error('There is no archive')
  await writer.write([markVerified(orm, archive, { bytes: 1, sha256: '0'.repeat(64) })])
  await writer.write(removeArchivedRows(orm, archive, { from: firstRowId, until: lastRowId + 1 }))
}
/** Who has the file can remove triggers. */
async function tamper(sql: string): Promise<void> {
  const { rows: triggers } = await own.database.client.execute("select name from sqlite_master where type = 'trigger'")
  const all = [...triggers.map(({ name }) => `drop trigger ${name}`), sql]
  await writer.write(all.map((text) => ({ toSQL: () => ({ sql: text, params: [] }) })))
}
async function results(): Promise<string[]> {
  const found: string[] = []
  for await (const { result } of checkUsageDays(own.database.orm)) found.push(result)
  return found
}

test('each closed day of an organization has its totals and a digest, once, and the open day has none', async () => {
  for (const at of [start + 1, start + 2]) await add(at)
  await add(start + 5, other)
  for (const at of [start + day, start + day + 1_000, start + 3 * day]) await add(at)
  now = start + 3 * day + 20 * 60_000
  const close = closing()
  await close()
  await close()
  await Promise.all([closing()(), closing()()])
  const found = await records()
  expect(found.map(({ day, organization_id, rows }) => [day, organization_id, rows])).toEqual([
    ['2026-11-20', 'acme', 2],
    ['2026-11-20', 'other', 1],
    ['2026-11-21', 'acme', 2],
  ])
  expect(found[0]).toMatchObject({
    first_row_id: 1,
    last_row_id: 2,
    keys: { 'acme-key': { requests: 2, total_tokens: 6, prompt_tokens: 2, cost_nanodollars: 20 } },
  })
  const { rows } = await own.database.client.execute('select * from usage where id <= 2 order by id')
  // Version 1 of a line has none of the columns that came later.
  const lines = rows.map(({ price: _price, attempts: _attempts, error: _error, ...row }) => JSON.stringify(row))
  const [first, second] = lines.map((line) => hashLeaf(Buffer.from(line)))
  if (first === undefined || second === undefined) throw new Error('The ledger has no rows')
  expect(found[0]?.root).toBe(Buffer.from(hashNode(first, second)).toString('hex'))
  expect(await results()).toEqual(['same', 'same', 'same'])
})

test('a row that is committed after its day was closed is in a later record of that day', async () => {
  await add(start + 1)
  now = start + day + 20 * 60_000
  await closing()()
  await add(start + 2)
  await add(start + day + 1)
  now += day
  await closing()()
  expect((await records()).map(({ day, rows, from, through }) => [day, rows, from, through])).toEqual([
    ['2026-11-20', 1, 1, 1],
    ['2026-11-20', 1, 2, 3],
    ['2026-11-21', 1, 2, 3],
  ])
  expect(await results()).toEqual(['same', 'same', 'same'])
})

test.each([
  ['a cost', 'update usage set cost_nanodollars = 9 where id = 2'],
  [
    'a key',
    "update usage set key_id = 'other-key', organization_id = 'other', workspace_id = 'other-workspace' where id = 2",
  ],
  ['a row less', 'delete from usage where id = 2'],
])('%s that was changed later is found', async (_, sql) => {
  for (let each = 1; each <= 3; each += 1) await add(start + each)
  now = start + day + 20 * 60_000
  await closing()()
  await tamper(sql)
  expect(await results()).toContain('different')
})

test('a closing that is ended early adds no record, and the next one adds it', async () => {
  for (let each = 1; each <= 3; each += 1) await add(start + each)
  now = start + day + 20 * 60_000
  const close = closing()
  let looks = 0
  await close(() => ++looks > 1)
  expect(await records()).toEqual([])
  await close()
  expect((await records()).map(({ day, rows }) => [day, rows])).toEqual([['2026-11-20', 3]])
})

test('a row of a day that ended long after it leaves from among the rows of the next day', async () => {
  for (const at of [start + 1, start + day + 1, start + day - 1, start + day + 2, start + 2 * day + 1]) await add(at)
  now = start + 3 * day + 20 * 60_000
  await closing()()
  await archive(start + day, 1, 3)
  expect(await results()).toEqual(['archived', 'same', 'same'])
  await tamper('update usage set cost_nanodollars = 9 where id = 4')
  expect(await results()).toEqual(['archived', 'different', 'same'])
})

test('a row of the next day before those that leave stays and raises no alarm', async () => {
  for (const at of [start + day + 1, start + 1, start + 2]) await add(at)
  now = start + 2 * day + 20 * 60_000
  await closing()()
  await archive(start + day, 2, 3)
  expect(await results()).toEqual(['same', 'archived'])
})

test('the first rows of the ledger that are gone without an archive are missed', async () => {
  for (const at of [start + 1, start + day + 1]) await add(at)
  now = start + 2 * day + 20 * 60_000
  await closing()()
  await tamper('delete from usage where id = 1')
  expect(await results()).toEqual(['different', 'same'])
})

test('the records of a range are compared together, however many there are', async () => {
  // One less than are read at once, of a range that has no rows.
  const body = { day: '2026-11-20', organization_id: 'acme', from: 0, through: 0, rows: 0, keys: {} }
  const fill = `with recursive n (i) as (select 1 union all select i + 1 from n where i < 9999)
    insert into log_records (at, kind, body) select 1, 'usage_day', '${JSON.stringify(body)}' from n`
  await writer.write([{ toSQL: () => ({ sql: fill, params: [] }) }])
  await add(start + 1)
  await add(start + 2, other)
  const days = await readUsageDays(own.database.orm, { from: 1, through: 2 })
  const last = await lastLogRecordId(own.database.orm)
  await writer.write([insertUsageDays(1, last, days)])
  expect((await results()).slice(9_999)).toEqual(['same', 'same'])
})

test('a request has a record by the second closing after it', () => {
  const closing = start + 15 * 60_000
  expect(isClosedBy(start - day - 1, closing)).toBe(true)
  expect(isClosedBy(start - day, closing)).toBe(false)
  expect(isClosedBy(start - day - 1, closing - 1)).toBe(false)
})
