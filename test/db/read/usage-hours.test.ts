// Reports from the totals by hour have what reports from the ledger have, whichever of the rows the totals include yet.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { hasHours, reportHours } from '../../../db/read/usage-hours.ts'
import { reportLedger, type UsageReport } from '../../../db/read/usage-report.ts'
import { usageGroupings } from '../../../db/schema/usage-groupings.ts'
import { addUsageSums } from '../../../db/write/usage-sums.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import {
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../../support/rows.ts'

const [acme, other] = [organizationRows('acme'), organizationRows('other')]
const hour = 60 * 60 * 1_000
const days = { firstDay: 100, lastDay: 102 }
const range = { since: 100 * 24 * hour, until: 103 * 24 * hour, limit: 1 }

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

const run = (...texts: string[]) => writer.write(texts.map((sql) => ({ toSQL: () => ({ sql, params: [] }) })))
const add = (index: number, fields: Partial<ReturnType<typeof usageRow>>, of = acme) =>
  writer.appendUsage({ ...usageRow(`request ${index}`, of), at: 101 * 24 * hour, ...fields })
const shown = ({ groups, rest }: UsageReport) => ({
  rest,
  groups: [...groups.values()]
    .map(({ values, totals, days }) => JSON.stringify([values, totals, [...days].toSorted(([a], [b]) => a - b)]))
    .toSorted(),
})
const count = ({ groups }: UsageReport) => [...groups.values()].reduce((sum, { totals }) => sum + totals.requests, 0)
let requests = 0

const row = fc.record({
  of: fc.constantFrom(acme, other),
  // Also before and after the days of the report.
  at: fc.integer({ min: 99 * 24, max: 104 * 24 }).map((at) => at * hour + 7),
  policyId: fc.constantFrom(null, acme.policy.id),
  model: fc.constantFrom(null, 'one', 'two'),
  attribution: fc.constantFrom(null, 'repository'),
  promptTokens: fc.option(fc.nat(99)),
  completionTokens: fc.option(fc.nat(99)),
  totalTokens: fc.option(fc.nat(99)),
  costNanodollars: fc.option(fc.nat(9)),
})

test('whatever was used, by each of their groupings and with each filter', async () => {
  const groupings = usageGroupings.filter(hasHours)
  expect(groupings).toEqual(['key', 'policy', 'attribution', 'model', 'day'])
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 1, maxLength: 12 }),
      fc.constantFrom(...groupings),
      fc.constantFrom({}, { keyId: acme.key.id }, { policyId: acme.policy.id }),
      fc.boolean(),
      async (rows, by, chosen, isSummed) => {
        for (const { of, ...fields } of rows) await add(++requests, fields, of)
        if (isSummed) await writer.write(addUsageSums)
        const { orm } = own.database
        for (const { organization } of [acme, other]) {
          const wanted = { organizationId: organization.id, ...chosen }
          const found = await reportHours(orm, by, { ...wanted, ...days }, 1_000)
          expect(shown(found)).toEqual(
            shown(await reportLedger(orm, by, { ...wanted, ...range }, { rowsMax: 100_000 })),
          )
          expect(found.cutAt).toBeUndefined()
        }
        const all = await reportHours(orm, by, { ...chosen, ...days, organizationId: undefined }, 1_000)
        expect(shown(all)).toEqual(shown(await reportLedger(orm, by, { ...chosen, ...range }, { rowsMax: 100_000 })))
      },
    ),
    { numRuns: 25 },
  )
})

test('with more totals than fit, the newest hours', async () => {
  await run('delete from hour_totals')
  for (const [index, at] of [100 * 24, 102 * 24 + 5, 102 * 24 + 20].entries())
    await add(++requests, { at: at * hour, model: `model ${index}` })
  await writer.write(addUsageSums)
  await run(`delete from hour_totals where model not like 'model %'`)
  const { orm } = own.database
  const filter = { ...days, organizationId: undefined }
  const cut = await reportHours(orm, 'model', filter, 2)
  expect([...cut.groups.keys()]).toEqual(['["model 2"]', '["model 1"]'])
  expect(cut.cutAt).toBeLessThanOrEqual((102 * 24 + 5) * hour)
  expect(cut.cutAt).toBeGreaterThan(100 * 24 * hour)
  const all = await reportHours(orm, 'model', filter, 1_000)
  expect([count(all), all.cutAt]).toEqual([3, undefined])
})

test('only since the newest hour whose prompt tokens nobody has added up, unless it is of others', async () => {
  await run(`update hour_totals set prompt_tokens = null, completion_tokens = null where hour = ${102 * 24 + 5}`)
  const { orm } = own.database
  const found = await reportHours(orm, 'model', { ...days, organizationId: acme.organization.id }, 1_000)
  expect([...found.groups.keys()]).toEqual(['["model 2"]'])
  expect(found.cutAt).toBe((102 * 24 + 6) * hour)
  const others = await reportHours(orm, 'model', { ...days, organizationId: other.organization.id }, 1_000)
  expect([count(others), others.cutAt]).toEqual([0, undefined])
  // More requests of that hour leave it unknown.
  await add(++requests, { at: (102 * 24 + 5) * hour, model: 'model 1' })
  await writer.write(addUsageSums)
  expect((await reportHours(orm, 'model', { ...days, organizationId: acme.organization.id }, 1_000)).cutAt).toBe(
    (102 * 24 + 6) * hour,
  )
})
