// Reports from the totals by day, inference server and preset have what reports from the ledger have, whichever rows the totals include yet.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { reportLedger, type UsageReport } from '../../../db/read/usage-report.ts'
import { isServed, reportServed } from '../../../db/read/usage-served.ts'
import { usageGroupings } from '../../../db/schema/usage-groupings.ts'
import { addServedTotals } from '../../../db/tables/served-totals.ts'
import type { Statement } from '../../../db/write/rows.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import {
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../../support/rows.ts'

const [acme, other] = [organizationRows('acme'), organizationRows('other')]
const day = 24 * 60 * 60 * 1_000
const days = { firstDay: 100, lastDay: 102 }
const range = { since: 100 * day, until: 103 * day, limit: 1 }
const all = { rowsMax: 100_000 }

let own: TestDatabase
let writer: Writer
beforeAll(async () => {
  own = await createDatabase()
  writer = createWriter(own.database, () => {})
  await writer.write([...insertOrganizationRows(own.database, acme), ...insertOrganizationRows(own.database, other)])
})
afterAll(async () => {
  await writer.close()
  await own.close()
})

const run = (sql: string) => writer.write([{ toSQL: () => ({ sql, params: [] }) }])
const addUp = (write = (statements: Statement[]) => writer.write(statements), isStopped = () => false) =>
  addServedTotals({ ...own.database, write, isStopped }, 1)
let requests = 0
const add = (fields: Partial<ReturnType<typeof usageRow>>, of = acme) =>
  writer.appendUsage({ ...usageRow(`request ${++requests}`, of), at: 101 * day, ...fields })
const shown = ({ groups, rest }: UsageReport) => ({
  rest,
  groups: [...groups.values()]
    .map(({ values, totals, days }) => JSON.stringify([values, totals, [...days].toSorted(([a], [b]) => a - b)]))
    .toSorted(),
})
const requestsOf = ({ groups }: UsageReport) => [...groups.values()].map(({ totals }) => totals.requests).toSorted()

const row = fc.record({
  of: fc.constantFrom(acme, other),
  // Also before and after the days of the report.
  at: fc.integer({ min: 99, max: 103 }).map((at) => at * day + 7),
  upstream: fc.constantFrom(null, 'one', 'two'),
  presetVersion: fc.constantFrom(null, 'version'),
  promptTokens: fc.option(fc.nat(99)),
  completionTokens: fc.option(fc.nat(99)),
  totalTokens: fc.option(fc.nat(99)),
  costNanodollars: fc.option(fc.nat(9)),
})

test('whatever was used, by both of their groupings', async () => {
  const groupings = usageGroupings.filter(isServed)
  expect(groupings).toEqual(['preset', 'upstream'])
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 1, maxLength: 12 }),
      fc.constantFrom(...groupings),
      fc.boolean(),
      async (rows, by, isSummed) => {
        for (const { of, ...fields } of rows) await add(fields, of)
        if (isSummed) await addUp()
        const { reader } = own.database
        for (const { organization } of [acme, other]) {
          const found = await reportServed(reader, by, { ...days, organizationId: organization.id }, all)
          const filter = { ...range, organizationId: organization.id }
          expect(shown(found)).toEqual(shown(await reportLedger(reader, by, filter, all)))
          expect(found.cutAt).toBeUndefined()
        }
      },
    ),
    { numRuns: 25 },
  )
})

const reportOfAcme = (rowsMax = 100_000) =>
  reportServed(own.database.reader, 'upstream', { ...days, organizationId: acme.organization.id }, { rowsMax })

test('of two nodes that add the same requests, one does', async () => {
  await addUp()
  const before = await reportOfAcme()
  for (let each = 0; each < 3; each++) await add({ upstream: 'three' })
  // The other node commits between the read and the commit of this one.
  let isFirst = true
  await addUp(async (statements) => {
    if (isFirst) {
      isFirst = false
      await addUp()
    }
    await writer.write(statements)
  })
  await run('delete from served_totals where upstream <> "three"'.replaceAll('"', "'"))
  expect(requestsOf(await reportOfAcme())).toEqual([3])
  expect(before.groups.has('["three"]')).toBe(false)
})

test('nothing is committed after a stop, and a few new requests wait', async () => {
  await add({ upstream: 'three' })
  const write = () => Promise.reject(new Error('committed'))
  await addUp(write, () => true)
  await addServedTotals({ ...own.database, write, isStopped: () => false })
  expect(requestsOf(await reportOfAcme())).toEqual([4])
})

test('of more requests than are read, the newest; once they are added up, all', async () => {
  await add({ at: 101 * day + 9, upstream: 'three' })
  const cut = await reportOfAcme(1)
  expect([requestsOf(cut), cut.cutAt]).toEqual([[1], 101 * day + 9])
  await addUp()
  const whole = await reportOfAcme(1)
  expect([requestsOf(whole), whole.cutAt]).toEqual([[5], undefined])
})

test('not the days of which some requests had been archived before', async () => {
  await run('update served_summed set since_day = 102')
  await add({ at: 102 * day, upstream: 'three' })
  const found = await reportOfAcme()
  expect([requestsOf(found), found.cutAt]).toEqual([[1], 102 * day])
})
