// The totals of closed days: for each UTC day, organization and range of ledger rows, how many there are, what each key used, and a digest
// of the rows. Every row is in exactly one record: one that is committed after its day was closed is in a later record of the same day.
import { createHash, type Hash } from 'node:crypto'
import type { Database, Orm } from '../../db/file/open.ts'
import { type LoggedRow, readLoggedRows } from '../../db/read/log-rows.ts'
import { nextSlice } from '../../db/read/pace.ts'
import { findLogRecord, insertUsageDays, listLogRecords, usageRowSince } from '../../db/tables/audit-log.ts'
import { rowIdsOf } from '../../db/tables/usage.ts'
import type { Writer } from '../../db/write/write.ts'

type KeyTotals = Record<(typeof summed)[number] | 'requests', number>

/** The body of a record. `from` and `through`: the ids that were read, whatever their organization. */
export type UsageDayBody = {
  day: string
  organization_id: string
  from: number
  through: number
  rows: number
  first_row_id: number
  last_row_id: number
  /** Of the lines of the rows, each with a newline, in the order of their ids. */
  sha256: string
  keys: Record<string, KeyTotals>
}

type OpenDay = Omit<UsageDayBody, 'sha256' | 'from' | 'through'> & { hash: Hash }

const summed = ['prompt_tokens', 'completion_tokens', 'total_tokens', 'cost_nanodollars'] as const
const rowsAtOnce = 500
/** More than organizations times the days of an outage. */
const recordsAtOnce = 10_000
const dayMilliseconds = 24 * 60 * 60 * 1_000
/** Most requests of a day have ended this long after it. */
const patienceMilliseconds = 15 * 60_000

type ClosingContext = { database: Pick<Database, 'orm'>; writer: Pick<Writer, 'write'>; now: () => number }

/**
 * Returns a function that adds a record for each day that has ended and has rows without one. It reads nothing until another day has ended.
 * Of several nodes, one adds them.
 */
export function createDayClosing({ database, writer, now }: ClosingContext): () => Promise<void> {
  const { orm } = database
  let closedBefore = 0
  return async () => {
    const due = now() - patienceMilliseconds
    const before = due - (due % dayMilliseconds)
    if (before <= closedBefore) return
    const known = await findLogRecord(orm, 'usage_day')
    const after = known === undefined ? 0 : (JSON.parse(known.body) as UsageDayBody).through
    const days = await readUsageDays(orm, { from: after + 1, through: (await usageRowSince(orm, before)) - 1 })
    if (days.length > 0) await writer.write([insertUsageDays(now(), after, days)])
    closedBefore = before
  }
}

/** The records of a range of ledger rows. */
export async function readUsageDays(
  orm: Orm,
  { from, through }: Pick<UsageDayBody, 'from' | 'through'>,
): Promise<UsageDayBody[]> {
  const days = new Map<string, OpenDay>()
  for (let after = from - 1; after < through; ) {
    await nextSlice()
    const rows = await readLoggedRows(orm, 'usage', { after, last: through, most: rowsAtOnce })
    for (const row of rows) addRow(days, row)
    const last = rows.at(-1)
    if (last === undefined) break
    after = last.id
  }
  return [...days.values()].map(({ hash, keys, ...day }) => ({
    ...day,
    from,
    through,
    sha256: hash.digest('hex'),
    keys,
  }))
}

function noTotals(): KeyTotals {
  return { requests: 0, prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost_nanodollars: 0 }
}

type UsageLine = { organization_id: string; key_id: string } & Record<(typeof summed)[number], number | null>

function addRow(days: Map<string, OpenDay>, { id, at, line }: LoggedRow): void {
  const row = JSON.parse(line) as UsageLine
  const day = new Date(at).toISOString().slice(0, 10)
  const name = `${day} ${row.organization_id}`
  const known = days.get(name)
  const open = known ?? {
    ...{ day, organization_id: row.organization_id, rows: 0, first_row_id: id, last_row_id: id },
    ...{ hash: createHash('sha256'), keys: {} },
  }
  if (known === undefined) days.set(name, open)
  open.rows += 1
  open.last_row_id = id
  open.hash.update(`${line}\n`)
  const totals = open.keys[row.key_id] ?? noTotals()
  open.keys[row.key_id] = totals
  totals.requests += 1
  // As everywhere, sums end at the largest safe integer.
  for (const column of summed) totals[column] = Math.min(totals[column] + (row[column] ?? 0), Number.MAX_SAFE_INTEGER)
}

/** How the records of days compare with the ledger. */
export type UsageDayCheck = { result: 'same' | 'archived' | 'different'; day: string; ref: number; at: number }

/** Compares every record of a day with the ledger rows of its range, and finds days in a range that have no record. */
export async function* checkUsageDays(orm: Orm): AsyncGenerator<UsageDayCheck> {
  const { first } = await rowIdsOf(orm)
  for (let after = 0; ; ) {
    const records = await listLogRecords(orm, 'usage_day', after, recordsAtOnce)
    const ranges = Map.groupBy(records, ({ body }) => (JSON.parse(body) as UsageDayBody).through)
    for (const [through, own] of ranges) {
      const bodies = own.map(({ body }) => JSON.parse(body) as UsageDayBody)
      const from = bodies[0]?.from ?? 0
      const found = from < first ? undefined : await readUsageDays(orm, { from, through })
      for (const [index, { id, at, body }] of own.entries()) {
        const result = found === undefined ? 'archived' : JSON.stringify(found[index]) === body ? 'same' : 'different'
        yield { result, day: bodies[index]?.day ?? '', ref: id, at }
      }
      const last = own.at(-1)
      if (found !== undefined && found.length > own.length && last !== undefined)
        yield { result: 'different', day: found.at(-1)?.day ?? '', ref: last.id, at: last.at }
    }
    if (records.length < recordsAtOnce) return
    after = records.at(-1)?.id ?? after
  }
}
