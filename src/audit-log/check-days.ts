// Compares the totals of closed days with the ledger.
import type { Orm } from '../../db/file/open.ts'
import { readLoggedRows } from '../../db/read/log-rows.ts'
import { readArchived } from './archived-rows.ts'
import { closedRanges } from './closed-days.ts'
import { readErasedRoots, readUsageDays, recordName, type UsageDayBody } from './usage-days.ts'

/** How the records of days compare with the ledger. `ref` is the id of the record, or that of an added row. */
export type UsageDayCheck = {
  result: 'same' | 'archived' | 'different' | 'added'
  day: string
  ref: number
  at: number
}

/** Compares every record of a day with the ledger rows of its range, and finds days in a range that have no record. */
export async function* checkUsageDays(orm: Orm): AsyncGenerator<UsageDayCheck> {
  const isArchived = await readArchived(orm, 'usage')
  const erasedRoots = await readErasedRoots(orm)
  // Ids begin at 1, and so do the days.
  const [added] = await readLoggedRows(orm, 'usage', { after: Number.MIN_SAFE_INTEGER, last: 0, most: 1 })
  if (added !== undefined) yield { result: 'added', day: '', ref: added.id, at: added.at }
  for await (const { from, through, records } of closedRanges(orm)) {
    const left = new Map<string, UsageDayBody>()
    for (const found of await readUsageDays(orm, { from, through })) left.set(recordName(found), found)
    for (const { id, at, text, body } of records) {
      const name = recordName(body)
      const found = left.get(name)
      left.delete(name)
      const root = erasedRoots.get(name)
      const expected = root === undefined ? text : JSON.stringify({ ...body, root })
      const isLess = (found?.rows ?? 0) < body.rows && isArchived(body.first_row_id, body.last_row_id)
      const result = JSON.stringify(found) === expected ? 'same' : isLess ? 'archived' : 'different'
      yield { result, day: body.day, ref: id, at }
    }
    const last = records.at(-1)
    for (const { day } of left.values())
      if (last !== undefined) yield { result: 'different', day, ref: last.id, at: last.at }
  }
}
