// Erases a subject: what rows say of it, and the salts of their leaves. Every commit has its record, so that no salt is ever gone without one,
// and an erasure that was interrupted is completed by running it again.
import type { Orm } from '../../db/file/open.ts'
import { readErasedRows, readLastRowIds } from '../../db/read/log-rows.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import { eraseAlertValues, listAlertsOfValues } from '../../db/tables/alerts.ts'
import { isOvertaken, listLeavesOf, readLogHead } from '../../db/tables/audit-log.ts'
import {
  type ErasedSource,
  type ErasedSubject,
  eraseRows,
  eraseSalts,
  listCounterValues,
  listSubjectRows,
} from '../../db/tables/erasure.ts'
import { insertErasure, lastLogRecordId } from '../../db/tables/log-records.ts'
import { rowIdsOf } from '../../db/tables/usage.ts'
import type { Statement } from '../../db/write/rows.ts'
import { addUsageSums } from '../../db/write/usage-sums.ts'
import type { Writer } from '../../db/write/write.ts'
import { Fault } from '../fault.ts'
import { appendRows } from './append.ts'
import { type ClosedRange, closedRangeWith } from './closed-days.ts'
import { codesOf } from './entry.ts'
import { createRowsDigest, type ErasureBody, type ErasureReason } from './erasure-record.ts'
import type { AuditLogMode } from './mode.ts'
import { readErasedRoots, readUsageDays, recordName } from './usage-days.ts'

export type EraseContext = {
  orm: Orm
  reader: Orm
  writer: Pick<Writer, 'write'>
  mode: AuditLogMode
  now: () => number
  /** Whether a server that stops waits no longer. Nothing is read or committed from then on. */
  isOver?: () => boolean
}

/** @throws Fault `unavailable` */
function rejectOver({ isOver }: EraseContext): void {
  if (isOver?.() !== true) return
  throw new Fault(
    'unavailable',
    'The server stopped before everything was erased; start it and erase the subject again',
  )
}

/** Rows of one commit: a few milliseconds. */
const rowsAtOnce = 250

/**
 * Erases the rows that a subject has when this begins. Run it while this process appends no leaves. `onProgress` is called with rows read.
 * @returns how many exchanges and requests were erased, and of how many alerts the value
 * @throws Fault `unavailable` when it is over (`isOver`): what was committed until then stays erased
 */
export async function eraseSubject(
  context: EraseContext,
  subject: ErasedSubject,
  reason: ErasureReason,
  onProgress?: OnProgress,
): Promise<Pick<ErasureBody, 'exchanges' | 'usage'> & { alerts: number }> {
  const { orm, reader, mode } = context
  // Another node may be about to give a row the leaf of its old text, unless it has one.
  if (mode === 'full') await appendRows(context)
  const exchangesLast =
    mode === 'full' ? (await readLogHead(orm)).positions.exchanges : (await readLastRowIds(orm)).exchanges
  const usageLast = (await rowIdsOf(orm)).end - 1
  const onRead = (done: number) => {
    rejectOver(context)
    onProgress?.(done, exchangesLast + usageLast)
  }
  const exchanges = await listSubjectRows(reader, 'exchanges', subject, { last: exchangesLast }, onRead)
  const usage = await listSubjectRows(reader, 'usage', subject, { last: usageLast }, (done) =>
    onRead(exchangesLast + done),
  )
  const alerts = await alertsOf(context, subject, reason.organization_id, { exchanges, usage })
  for (const ids of chunksOf(alerts)) await context.writer.write([eraseAlertValues(ids)])
  for (const ids of chunksOf(exchanges)) await eraseExchanges(context, subject, reason, ids)
  await eraseUsage(context, subject, reason, usage)
  return { exchanges: exchanges.length, usage: usage.length, alerts: alerts.length }
}

/** The alerts of budgets for each attribution or session that rows of the subject have. */
async function alertsOf(
  context: EraseContext,
  { subject }: ErasedSubject,
  organizationId: string,
  ids: Record<ErasedSource, readonly number[]>,
): Promise<string[]> {
  const values = new Set([subject])
  for (const source of ['exchanges', 'usage'] as const)
    for (const some of chunksOf(ids[source])) {
      rejectOver(context)
      for (const value of await listCounterValues(context.reader, source, some)) values.add(value)
    }
  return listAlertsOfValues(context.reader, organizationId, [...values])
}

function chunksOf<Id>(ids: readonly Id[]): Id[][] {
  return Array.from({ length: Math.ceil(ids.length / rowsAtOnce) }, (_, index) =>
    ids.slice(index * rowsAtOnce, (index + 1) * rowsAtOnce),
  )
}

async function eraseExchanges(
  context: EraseContext,
  subject: ErasedSubject,
  reason: ErasureReason,
  ids: readonly number[],
): Promise<void> {
  const { orm, reader } = context
  const leaves = await listLeavesOf(reader, codesOf('exchanges'), ids)
  const range = { after: (ids[0] ?? 1) - 1, last: ids.at(-1), most: ids.length, isOnly: true }
  const digest = createRowsDigest()
  // Without a leaf, nothing of a row was promised.
  if (leaves.length > 0)
    for (const { line } of await readErasedRows(reader, 'exchanges', subject, range)) digest.add(line)
  const record = { ...reason, exchanges: ids.length, leaves, rows_sha256: digest.end(), usage: 0, days: [] }
  const statements = [eraseRows('exchanges', ids), eraseSalts(leaves)]
  for (let isDone = false; !isDone; ) isDone = await commit(context, await lastLogRecordId(orm), record, statements)
}

/** Commits under the record that follows `lastRecord`. Returns false if there is another one by then. */
async function commit(
  context: EraseContext,
  lastRecord: number,
  body: ErasureBody,
  statements: Statement[],
): Promise<boolean> {
  const { orm, writer, now } = context
  rejectOver(context)
  try {
    await writer.write([insertErasure(orm, { id: lastRecord + 1, at: now(), body }), ...statements])
    return true
  } catch (error) {
    if (!isOvertaken(error)) throw error
    return false
  }
}

/** Rows of days that are closed change the roots of their records; the others have none yet. */
async function eraseUsage(
  context: EraseContext,
  subject: ErasedSubject,
  reason: ErasureReason,
  all: readonly number[],
): Promise<void> {
  for (let ids = [...all]; ids.length > 0; ) {
    // What is read here must still be so at the commit: days that are closed, and what others erase.
    const lastRecord = await lastLogRecordId(context.orm)
    const first = ids[0] ?? 0
    const range = await closedRangeWith(context.orm, first)
    const own = ids.filter((id) => range === undefined || id <= range.through).slice(0, rowsAtOnce)
    const days = range === undefined ? [] : await rootsWithout(context, subject, range)
    const record = {
      ...reason,
      exchanges: 0,
      leaves: [],
      rows_sha256: createRowsDigest().end(),
      usage: own.length,
      days,
    }
    // What budgets count by is no longer in the rows after it, and stays in the totals.
    if (await commit(context, lastRecord, record, [...addUsageSums, eraseRows('usage', own)]))
      ids = ids.slice(own.length)
  }
}

/** What is read of days once it is over is not whole: the commit that follows refuses. */
async function rootsWithout({ orm, reader, isOver }: EraseContext, subject: ErasedSubject, range: ClosedRange) {
  const options = isOver === undefined ? { without: subject } : { without: subject, isOver }
  const [erased, bodies] = [await readErasedRoots(orm), await readUsageDays(reader, range, options)]
  return range.records.flatMap(({ body }, index) => {
    const root = bodies[index]?.root
    const { day, from } = body
    return root === undefined || root === (erased.get(recordName(body)) ?? body.root) ? [] : [{ day, from, root }]
  })
}
