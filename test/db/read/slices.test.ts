// Reports read in slices: they say what one statement over all rows would.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Orm } from '../../../db/file/open.ts'
import { nextSlice } from '../../../db/read/pace.ts'
import { readInSlices } from '../../../db/read/slices.ts'
import { findDrift, sumUsage } from '../../../db/read/usage-totals.ts'
import { type UsageGrouping, usageGroupings } from '../../../db/schema/usage-groupings.ts'
import { findAudit } from '../../../db/tables/audit.ts'
import { listUsage, type UsageFilter } from '../../../db/tables/usage.ts'
import { addUsageSums } from '../../../db/write/usage-sums.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import { timeOfRequest } from '../../../src/http/request-id.ts'
import { turnsDuring } from '../../support/event-loop.ts'
import {
  auditRow,
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../../support/rows.ts'

const pointOf = (requestId: string) => ({ requestId, at: timeOfRequest(requestId) })

const acme = organizationRows('acme')
const other = organizationRows('other')
/** More than two slices, and more than the second connection leaves to the first. */
const rowCount = 9_000
const hour = 3_600_000

let own: TestDatabase
let writer: Writer
let orm: Orm
beforeAll(async () => {
  own = await createDatabase()
  orm = own.database.reader
  writer = createWriter(own.database, () => {})
  await writer.write([...insertOrganizationRows(own.database, acme), ...insertOrganizationRows(own.database, other)])
  const rows: Promise<void>[] = []
  for (let index = 0; index < rowCount; index++) {
    const of = index % 3 === 0 ? other : acme
    const row = usageRow(requestIdOf(index), of)
    // Requests end in the order of the rows, and began up to ten minutes before.
    const at = index * 60_000 - (index % 10) * 60_000 + hour
    const federated =
      index % 4 === 0 ? { policyId: of.policy.id, issuerId: of.issuer.id, subject: `s${index % 900}` } : {}
    rows.push(
      writer.appendUsage({
        ...row,
        ...federated,
        at,
        durationMilliseconds: (index % 10) * 60_000,
        model: index % 7 === 0 ? null : `m${index % 5}`,
        totalTokens: index % 11 === 0 ? null : index,
        costNanodollars: index % 13 === 0 ? null : index,
      }),
      writer.appendAudit({ ...auditRow(requestIdOf(index)), at: index * 1_000, policyNamed: String(index % 10) }),
    )
  }
  await Promise.all(rows)
  await writer.write(addUsageSums)
  const sql = `insert into admin_changes (at, actor, operation, kind, target_id) with recursive n(i) as
    (select 1 union all select i + 1 from n where i < ${rowCount}) select i, 'local', 'x', 'key', 'k' from n`
  await writer.write([{ toSQL: () => ({ sql, params: [] }) }])
})
afterAll(async () => {
  await writer.close()
  await own.close()
})

/** A UUID of version 7 that carries the time of the audit row. */
function requestIdOf(index: number): string {
  const time = (index * 1_000).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(index).padStart(12, '0')}`
}

const everything = { limit: 10_000 }
test('between two slices the event loop turns as often as a request takes', async () => {
  expect(await turnsDuring(nextSlice)).toBeGreaterThanOrEqual(4)
})

/** The same by one statement. */
async function sumAtOnce(
  by: UsageGrouping,
  { organizationId, keyId, since = 0, until = 1e15, beforeId = 1e15 }: UsageFilter,
) {
  const columns = {
    key: ['key_id'],
    policy: ['policy_id'],
    subject: ['issuer_id', 'subject'],
    attribution: ['attribution'],
    model: ['model'],
    preset: ['workspace_id', 'preset_version'],
    upstream: ['upstream'],
    user: ['end_user'],
    session: ['session_id'],
    day: ['at / 86400000'],
  }[by].join(', ')
  const { rows } = await own.database.client.execute({
    sql: `select ${columns}, count(*), total(prompt_tokens), total(completion_tokens), total(total_tokens), total(cost_nanodollars),
        sum(cost_nanodollars is null), max(at) from usage
      where at >= ? and at < ? and id < ? and (? is null or organization_id = ?) and (? is null or key_id = ?) group by ${columns}`,
    args: [since, until, beforeId, organizationId, organizationId, keyId, keyId].map((value) => value ?? null),
  })
  return rows.map((row) => Object.values(row) as (string | number | null)[]).toSorted(inOrder)
}
const inOrder = (one: unknown[], other: unknown[]) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)

test('sums are those of one statement, whatever the filter', async () => {
  const time = fc.integer({ min: 0, max: rowCount * 60_000 + 2 * hour })
  const filter = fc.record(
    {
      organizationId: fc.constantFrom('acme', 'other'),
      keyId: fc.constantFrom(acme.key.id, 'none'),
      since: time,
      until: time,
      beforeId: fc.integer({ min: 1, max: 2 * rowCount }),
      limit: fc.constant(10_000),
    },
    { requiredKeys: ['limit'] },
  )
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...usageGroupings), filter, async (by, given) => {
      const sums = (await sumUsage(orm, by, given)).map(
        ({ group, requests, promptTokens, completionTokens, totalTokens, costNanodollars, unpriced, lastUsedAt }) => [
          ...Object.values(group),
          ...[requests, promptTokens, completionTokens, totalTokens, costNanodollars, unpriced, lastUsedAt],
        ],
      )
      expect(sums.toSorted(inOrder)).toEqual(await sumAtOnce(by, given))
    }),
    { numRuns: 40 },
  )
})

test('lists are those of one statement, whatever the filter', async () => {
  const filter = fc.record(
    {
      keyId: fc.constantFrom(acme.key.id, other.key.id, 'none'),
      since: fc.integer({ min: 0, max: rowCount * 60_000 + 2 * hour }),
      beforeId: fc.integer({ min: 1, max: 2 * rowCount }),
      limit: fc.integer({ min: 1, max: 500 }),
    },
    { requiredKeys: ['limit'] },
  )
  await fc.assert(
    fc.asyncProperty(filter, async (given) => {
      const { keyId = null, since = 0, beforeId = 1e15, limit } = given
      const { rows } = await own.database.client.execute({
        sql: 'select id from usage where (? is null or key_id = ?) and at >= ? and id < ? order by id desc limit ?',
        args: [keyId, keyId, since, beforeId, limit],
      })
      expect((await listUsage(orm, given, ({ id }) => id)).rows).toEqual(rows.map(({ id }) => Number(id)))
    }),
    { numRuns: 40 },
  )
})

test('an exchange is found by its request id wherever it is, and another is not', async () => {
  for (const index of [0, 1, 4_567, rowCount - 1])
    expect(await findAudit(orm, pointOf(requestIdOf(index)))).toMatchObject({ at: index * 1_000 })
  expect(await findAudit(orm, pointOf(requestIdOf(5).replace('-7', '-6')))).toBeUndefined()
})

describe('the verification', () => {
  test('takes requests that end meanwhile for no drift', async () => {
    let isOver = false
    const writing = (async () => {
      for (let index = 0; !isOver; index++) {
        await writer.appendUsage({ ...usageRow(`late-${index}`, index % 2 === 0 ? acme : other), at: index * hour })
      }
    })()
    for (let round = 0; round < 5; round++) expect(await findDrift(orm)).toEqual([])
    isOver = true
    await writing
  })

  test.each([
    ['a total that is too large', 'update day_totals set requests = requests + 1 where key_id = ? and day = ?'],
    ['a total that is missing', 'delete from day_totals where key_id = ? and day = ?'],
    ['a cost that differs', 'update day_totals set cost_nanodollars = 1 where key_id = ? and day = ?'],
  ])('finds %s', async (_, sql) => {
    const { client } = own.database
    const kept = await client.execute("select * from day_totals where key_id = 'acme-key' and day = 2")
    await writer.write([{ toSQL: () => ({ sql, params: [acme.key.id, 2] }) }])
    expect(await findDrift(orm)).toEqual([{ keyId: acme.key.id, day: 2 }])
    const [row] = kept.rows
    const restore = `insert or replace into day_totals values (${kept.columns.map(() => '?').join(',')})`
    await writer.write([{ toSQL: () => ({ sql: restore, params: Object.values(row ?? {}) }) }])
    expect(await findDrift(orm)).toEqual([])
  })

  test('finds totals that have no rows', async () => {
    const row = [other.key.id, 99_999, 1, 1, 1, 1, 1, 0]
    await writer.write([{ toSQL: () => ({ sql: 'insert into day_totals values (?,?,?,?,?,?,?,?)', params: row }) }])
    expect(await findDrift(orm)).toEqual([{ keyId: other.key.id, day: 99_999 }])
    await writer.write([{ toSQL: () => ({ sql: 'delete from day_totals where day = 99999', params: [] }) }])
  })
})

test('progress is reported up to the last row, and what it throws ends the report', async () => {
  const told: [number, number][] = []
  await sumUsage(orm, 'key', { limit: 9, beforeId: 5_001 }, (done, total) => void told.push([done, total]))
  expect(told.length).toBeGreaterThan(1)
  expect(told.at(-1)).toEqual([5_000, 5_000])
  expect(told.map(([done]) => done)).toEqual(told.map(([done]) => done).toSorted((one, two) => one - two))
  const gone = sumUsage(orm, 'key', everything, () => {
    throw new Error('nobody listens')
  })
  // `rejects` would not let the answer of the second connection arrive.
  expect(await gone.catch((error: Error) => error.message)).toBe('nobody listens')
})

test('slices have no gap and no overlap', async () => {
  const ids: number[] = []
  for await (const [from, until] of readInSlices({ from: 7, until: 12_345 }, async (slice) => [
    slice.from,
    slice.until,
  ]))
    for (let id = from ?? 0; id < (until ?? 0); id++) ids.push(id)
  expect(ids).toEqual(Array.from({ length: 12_345 - 7 }, (_, index) => index + 7))
  for await (const _ of readInSlices({ from: 5, until: 5 }, async () => 0)) throw new Error('There is nothing to read')
})
