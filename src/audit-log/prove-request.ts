// Builds the proof of an inference request: the proof of the record of its day, with the way from its ledger row to the root in that record.
import type { Orm } from '../../db/file/open.ts'
import { type LedgerDay, readDayRows } from '../../db/read/log-rows.ts'
import { nextSlice } from '../../db/read/pace.ts'
import { readArchived } from './archived-rows.ts'
import { closedRangeWith } from './closed-days.ts'
import { type DayPlace, isInDay } from './day-place.ts'
import { type BuiltProof, proveRow, type SignedSize } from './prove.ts'
import { hashLeafText } from './transparency/merkle.ts'
import { createPathCollector } from './transparency/path-collector.ts'
import { dayMilliseconds, readErasedRoots, recordName, type UsageDayBody } from './usage-days.ts'

export type LedgerRow = { id: number; at: number; organizationId: string }

/** Why nothing proves a request: its day has no record yet, rows of the day were erased or are in archives, or were changed. */
export type RequestProblem = 'open' | 'erased' | 'archived' | 'different'

/** The UTC day of a time, such as 2026-11-26. */
export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

/** Reads the ledger rows of its day. */
export async function proveRequest(
  orm: Orm,
  signed: SignedSize,
  { id, at, organizationId }: LedgerRow,
): Promise<(BuiltProof & { proof: string }) | RequestProblem> {
  const day = dayOf(at)
  const { records = [] } = (await closedRangeWith(orm, id)) ?? {}
  const record = records.find(({ body }) => body.day === day && body.organization_id === organizationId)
  if (record === undefined) return 'open'
  if ((await readErasedRoots(orm)).has(recordName(record.body))) return 'erased'
  const place = await findPlace(orm, record.body, id)
  if (place === undefined || !isInDay(record.body, place)) {
    const isArchived = await readArchived(orm, 'usage')
    return isArchived(record.body.first_row_id, record.body.last_row_id) ? 'archived' : 'different'
  }
  const found = await proveRow(orm, signed, 'records', record.id, place)
  // The record is newer than the checkpoint, and the next one has it.
  if (found?.proof === undefined) return 'open'
  return { index: found.index, line: place.row, proof: found.proof }
}

const rowsAtOnce = 500
/** A statement looks at this many rows, also those of other organizations and days. */
const idsAtOnce = 4_000

async function findPlace(orm: Orm, body: UsageDayBody, wanted: number): Promise<DayPlace | undefined> {
  const since = Date.parse(body.day)
  const day: LedgerDay = { organizationId: body.organization_id, since, until: since + dayMilliseconds }
  const collector = createPathCollector(body.rows)
  let row: string | undefined
  for (let after = body.first_row_id - 1; after < body.last_row_id; ) {
    await nextSlice()
    const last = Math.min(after + idsAtOnce, body.last_row_id)
    const rows = await readDayRows(orm, day, { after, last, most: rowsAtOnce })
    for (const { id, line } of rows) {
      collector.add(hashLeafText(line), id === wanted)
      if (id === wanted) row = line
    }
    after = rows.at(-1)?.id ?? last
  }
  const path = collector.path()
  if (path === undefined || row === undefined) return undefined
  return { row, index: path.index, hashes: path.hashes.map((hash) => Buffer.from(hash).toString('base64')) }
}
