// Lists of requests and alerts: each row is in the list that its time and its end say, and a list says where its search stopped.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { UsageRow } from '../../../db/schema/record-schema.ts'
import { listAlerts, raiseAlerts } from '../../../db/tables/alerts.ts'
import { listUsage, requestResults, type UsageFilter } from '../../../db/tables/usage.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import {
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../../support/rows.ts'

const acme = organizationRows('acme')
let own: TestDatabase
let writer: Writer
const ended: Record<string, Partial<UsageRow>> = {
  whole: { status: 200, completed: true, clientLeft: false },
  cut: { status: 200, completed: false, clientLeft: false },
  refused: { status: 400, completed: true, clientLeft: false },
  'left early': { status: 200, completed: false, clientLeft: true },
  'left late': { status: 200, completed: true, clientLeft: true },
}
beforeAll(async () => {
  own = await createDatabase()
  writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, acme))
  for (const [id, more] of Object.entries(ended)) await writer.appendUsage({ ...usageRow(id, acme), ...more })
  const alert = (at: number) => ({
    ...{ id: `msg_${at}`, organizationId: 'acme', type: 'budget.reached' as const, subject: String(at), data: {} },
    ...{ at, neededUntil: null },
  })
  await writer.write(raiseAlerts([alert(10), alert(20), alert(30)]))
})
afterAll(async () => {
  await writer.close()
  await own.close()
})

const list = (filter: Partial<UsageFilter>, rowsReadMax?: number) =>
  listUsage(own.database.orm, { limit: 100, ...filter }, ({ requestId }) => requestId, {
    ...(rowsReadMax === undefined ? {} : { rowsReadMax }),
  })

test('every request has ended in one way', async () => {
  const found: Record<string, string[]> = {}
  for (const result of requestResults) found[result] = (await list({ result })).rows
  expect(found).toEqual({
    succeeded: ['whole'],
    failed: ['refused', 'cut'],
    client_left: ['left late', 'left early'],
  })
})

test('a list says where its search stopped, unless it is full or the search is over', async () => {
  expect(await list({ status: 400 }, 2)).toEqual({ rows: [], moreBeforeId: 4 })
  expect(await list({ status: 400, beforeId: 4 }, 2)).toEqual({ rows: ['refused'], moreBeforeId: 2 })
  expect(await list({ limit: 2 }, 2)).toEqual({ rows: ['left late', 'left early'], moreBeforeId: undefined })
  expect(await list({ status: 500 }, 5)).toEqual({ rows: [], moreBeforeId: undefined })
})

test('alerts are listed from a time on, up to another and without it', async () => {
  const times = async (since: number, until: number) =>
    (await listAlerts(own.database.orm, { organizationId: 'acme', since, until, limit: 10 })).map(({ at }) => at)
  expect(await times(10, 30)).toEqual([20, 10])
  expect(await times(11, 31)).toEqual([30, 20])
})
