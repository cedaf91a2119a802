// A request is found in the ledger by its id, without an index: wherever its row is, and without looking at all of them.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { findUsage } from '../../../db/tables/usage.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import { createRequestId, timeOfRequest } from '../../../src/http/request-id.ts'
import {
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../../support/rows.ts'

const pointOf = (requestId: string) => ({ requestId, at: timeOfRequest(requestId) })

const acme = organizationRows('acme')
const second = 1_000
const start = Date.parse('2026-11-21T00:00:00Z')
let own: TestDatabase
let writer: Writer
const ids: string[] = []
beforeAll(async () => {
  own = await createDatabase()
  writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, acme))
  for (let number = 0; number < 3_000; number++) {
    const at = start + number * second
    const id = createRequestId(at)
    ids.push(id)
    // One in a hundred runs for ten minutes, so that its row comes long after.
    const durationMilliseconds = number % 100 === 0 ? 600 * second : 5
    const append = () => writer.appendUsage({ ...usageRow(id, acme), at, durationMilliseconds })
    rows.push({ endedAt: at + durationMilliseconds, append })
  }
  for (const { append } of rows.toSorted((one, other) => one.endedAt - other.endedAt)) void append()
  await writer.close()
})
afterAll(() => own.close())
const rows: { endedAt: number; append: () => Promise<void> }[] = []

for (const number of [0, 1, 100, 1_234, 1_500, 2_900, 2_999]) {
  test(`request ${number} of 3,000 is found`, async () => {
    expect(await findUsage(own.database.orm, pointOf(ids[number] ?? ''))).toMatchObject({ requestId: ids[number] })
  })
}

test('one that is not there is not found', async () => {
  for (const at of [0, start, start + 1_500 * second, start + 86_400 * second])
    expect(await findUsage(own.database.orm, pointOf(createRequestId(at)))).toBeUndefined()
})

test('only the rows that a request may have behind it are read', async () => {
  const reach = { rowsReadMax: 700 }
  expect(await findUsage(own.database.orm, pointOf(ids[1_234] ?? ''), reach)).toMatchObject({ requestId: ids[1_234] })
  expect(await findUsage(own.database.orm, pointOf(ids[1_300] ?? ''), { rowsReadMax: 100 })).toBeUndefined()
})
