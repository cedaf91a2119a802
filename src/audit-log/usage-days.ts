// The totals of closed days: for each UTC day, organization and range of ledger rows, how many there are, what each key used, and the root
// of a tree of the rows. Every row is in exactly one record: one that is committed after its day was closed is in a later record of the
// same day.
import type { Database, Orm } from '../../db/file/open.ts'
import { type LoggedRow, readErasedRows, readLoggedRows } from '../../db/read/log-rows.ts'
import { nextSlice } from '../../db/read/pace.ts'
import type { ErasedSubject } from '../../db/tables/erasure.ts'
import {
  findLogRecord,
  insertUsageDays,
  lastLogRecordId,
  listAllLogRecords,
  usageRowSince,
} from '../../db/tables/log-records.ts'
import type { Writer } from '../../db/write/write.ts'
import type { ErasureBody } from './erasure-record.ts'
import { createFrontier, type Frontier } from './transparency/frontier.ts'
import { hashLeafText } from './transparency/merkle.ts'

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
  /** In hexadecimal digits, of a tree (RFC 9162) whose leaves are the lines of the rows in the order of their ids. */
  root: string
  keys: Record<string, KeyTotals>
}

type OpenDay = Omit<UsageDayBody, 'root' | 'from' | 'through'> & { tree: Frontier }

const summed = ['prompt_tokens', 'completion_tokens', 'total_tokens', 'cost_nanodollars'] as const
const rowsAtOnce = 500
export const dayMilliseconds = 24 * 60 * 60 * 1_000
/** Most requests of a day have ended this long after it. */
const patienceMilliseconds = 15 * 60_000

/** Days that have ended by then can get their records. */
function closedDaysEnd(now: number): number {
  const due = now - patienceMilliseconds
  return due - (due % dayMilliseconds)
}

/** When the rows that have no record now get one. */
export function nextClosingAt(now: number): number {
  return closedDaysEnd(now) + dayMilliseconds + patienceMilliseconds
}

/** Reports whether a request of that time has a record by then. One that was committed after its day was closed waits for the next closing. */
export function isClosedBy(at: number, now: number): boolean {
  return at < closedDaysEnd(now) - dayMilliseconds
}

type ClosingContext = { database: Pick<Database, 'orm' | 'reader'>; writer: Pick<Writer, 'write'>; now: () => number }

/**
 * Returns a function that adds a record for each day that has ended and has rows without one. It reads nothing until another day has ended.
 * Of several nodes, one adds them. `isOver`: ends it before it has added any.
 */
export function createDayClosing({ database, writer, now }: ClosingContext): (isOver?: () => boolean) => Promise<void> {
  const { orm, reader } = database
  let closedBefore = 0
  return async (isOver = () => false) => {
    const before = closedDaysEnd(now())
    if (before <= closedBefore) return
    const lastRecord = await lastLogRecordId(orm)
    const after = await closedThrough(orm)
    const through = (await usageRowSince(orm, before)) - 1
    const days = await readUsageDays(reader, { from: after + 1, through }, { isOver })
    if (isOver()) return
    if (days.length > 0) await writer.write([insertUsageDays(now(), lastRecord, days)])
    // Another record can have come in between, such as that of an erasure.
    if (days.length === 0 || (await closedThrough(orm)) >= through) closedBefore = before
  }
}

/** Up to which ledger row the days are closed. */
export async function closedThrough(orm: Orm): Promise<number> {
  const known = await findLogRecord(orm, 'usage_day')
  return known === undefined ? 0 : (JSON.parse(known.body) as UsageDayBody).through
}

type DayRange = Pick<UsageDayBody, 'from' | 'through'>
type DayOptions = {
  /** Reads the rows as they are once this subject is erased. */
  without?: ErasedSubject | undefined
  /** Called with each row, and the hash of its leaf, in the tree of its day and organization. */
  onLeaf?: (day: string, organizationId: string, row: LoggedRow, leafHash: Uint8Array) => void
  /** Ends it early: what it returns is of no use then. */
  isOver?: () => boolean
}

/** The records of a range of ledger rows. */
export async function readUsageDays(
  orm: Orm,
  { from, through }: DayRange,
  { without, onLeaf = () => {}, isOver = () => false }: DayOptions = {},
): Promise<UsageDayBody[]> {
  const days = new Map<string, OpenDay>()
  for (let after = from - 1; after < through && !isOver(); ) {
    await nextSlice()
    const range = { after, last: through, most: rowsAtOnce }
    const rows =
      without === undefined
        ? await readLoggedRows(orm, 'usage', range)
        : await readErasedRows(orm, 'usage', without, range)
    for (const row of rows) {
      const leafHash = hashLeafText(row.line)
      const { day, organization_id } = addRow(days, row, leafHash)
      onLeaf(day, organization_id, row, leafHash)
    }
    const last = rows.at(-1)
    if (last === undefined) break
    after = last.id
  }
  return [...days.values()].map(({ tree, keys, ...day }) => ({
    ...day,
    from,
    through,
    root: Buffer.from(tree.root()).toString('hex'),
    keys,
  }))
}

function noTotals(): KeyTotals {
  return { requests: 0, prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost_nanodollars: 0 }
}

type UsageLine = { organization_id: string; key_id: string } & Record<(typeof summed)[number], number | null>

function addRow(days: Map<string, OpenDay>, { id, at, line }: LoggedRow, leafHash: Uint8Array): OpenDay {
  const row = JSON.parse(line) as UsageLine
  const day = new Date(at).toISOString().slice(0, 10)
  const name = `${day} ${row.organization_id}`
  const known = days.get(name)
  const open = known ?? {
    ...{ day, organization_id: row.organization_id, rows: 0, first_row_id: id, last_row_id: id },
    ...{ tree: createFrontier(), keys: {} },
  }
  if (known === undefined) days.set(name, open)
  open.rows += 1
  open.last_row_id = id
  open.tree.add(leafHash)
  const totals = open.keys[row.key_id] ?? noTotals()
  open.keys[row.key_id] = totals
  totals.requests += 1
  // As everywhere, sums end at the largest safe integer.
  for (const column of summed) totals[column] = Math.min(totals[column] + (row[column] ?? 0), Number.MAX_SAFE_INTEGER)
  return open
}

/** What an erasure calls the record of a day: there is one for an organization, a day and a range of rows. */
export function recordName({
  organization_id,
  day,
  from,
}: Pick<UsageDayBody, 'organization_id' | 'day' | 'from'>): string {
  return `${organization_id} ${day} ${from}`
}

/** The roots that records of days have since rows of theirs were erased, by the name of the record. The newest erasure counts. */
export async function readErasedRoots(orm: Orm): Promise<Map<string, string>> {
  const roots = new Map<string, string>()
  for await (const { body } of listAllLogRecords(orm, 'erasure')) {
    const { organization_id, days } = JSON.parse(body) as ErasureBody
    for (const { day, from, root } of days) roots.set(recordName({ organization_id, day, from }), root)
  }
  return roots
}
