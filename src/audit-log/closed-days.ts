// The ranges of ledger rows whose days were closed together, with the records of these days.
import type { Orm } from '../../db/file/open.ts'
import { listAllLogRecords } from '../../db/tables/log-records.ts'
import type { UsageDayBody } from './usage-days.ts'

/** A record, with its text as it was logged. */
type ClosedDay = { id: number; at: number; text: string; body: UsageDayBody }

/** `from` and `through`: the ids of ledger rows that were read, whatever their organization. */
export type ClosedRange = Pick<UsageDayBody, 'from' | 'through'> & { records: ClosedDay[] }

/** Yields the ranges, oldest first. */
export async function* closedRanges(orm: Orm): AsyncGenerator<ClosedRange> {
  let range: ClosedRange | undefined
  for await (const { id, at, body: text } of listAllLogRecords(orm, 'usage_day')) {
    const body = JSON.parse(text) as UsageDayBody
    if (range !== undefined && range.from !== body.from) yield range
    if (range?.from !== body.from) range = { from: body.from, through: body.through, records: [] }
    range.records.push({ id, at, text, body })
  }
  if (range !== undefined) yield range
}

/** The range of a ledger row; undefined while its day has no record. */
export async function closedRangeWith(orm: Orm, row: number): Promise<ClosedRange | undefined> {
  for await (const range of closedRanges(orm)) if (row >= range.from && row <= range.through) return range
  return undefined
}
