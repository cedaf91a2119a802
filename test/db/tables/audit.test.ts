// Reading the audit without an index: what a filter finds within the rows it may read, and how it says that it stopped.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type AuditFilter, listAudit } from '../../../db/tables/audit.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import {
  auditRow,
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
} from '../../support/rows.ts'

const acme = organizationRows('acme')
const minute = 60_000
let own: TestDatabase
let writer: Writer
beforeAll(async () => {
  own = await createDatabase()
  writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, acme))
  for (let number = 1; number <= 10; number++) {
    const reason = number === 2 || number === 9 ? 'expired' : 'replayed'
    const row = { ...auditRow(`row-${number}`), policyId: acme.policy.id, organizationId: acme.organization.id }
    await writer.appendAudit({ ...row, at: number * minute, reason })
  }
})
afterAll(async () => {
  await writer.close()
  await own.close()
})

const rows: [name: string, filter: Partial<AuditFilter>, found: number[], moreBeforeId: number | undefined][] = [
  ['finds what is within its reach and tells where it stopped', { reason: 'expired' }, [9], 7],
  ['goes on from there', { reason: 'expired', beforeId: 7 }, [], 3],
  ['ends at the first row', { reason: 'expired', beforeId: 3 }, [2], undefined],
  ['has a next page by its last row when the limit is reached', { reason: 'expired', limit: 1 }, [9], undefined],
  ['has nothing more when older rows are too old', { reason: 'expired', since: 9.5 * minute }, [], undefined],
  ['has more when older rows may be new enough', { reason: 'expired', since: 8.5 * minute }, [9], 7],
  ['reads from its end, not from the newest row', { until: 6 * minute }, [5], 5],
  ['narrows by policy', { policyId: acme.policy.id, reason: 'replayed' }, [10, 8, 7], 7],
  ['finds nothing of another policy', { policyId: 'other' }, [], 7],
]
for (const [name, filter, found, moreBeforeId] of rows) {
  test(`a filter ${name}`, async () => {
    const answer = await listAudit(own.database.orm, { limit: 50, ...filter }, ({ id }) => id, { rowsReadMax: 4 })
    expect(answer).toEqual({ rows: found, moreBeforeId })
  })
}
