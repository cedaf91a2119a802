// Gives rows their leaves. Rows of a table are append-only and numbered without gaps that could be filled later, so every row above the last
// covered one is new: no row can be missed, whichever node wrote it, with whichever program, and whenever it was killed.

import type { Orm } from '../../db/file/open.ts'
import { type LoggedRow, readLastRowIds, readLoggedRows } from '../../db/read/log-rows.ts'
import { nextSlice } from '../../db/read/pace.ts'
import { type LogSource, logSources } from '../../db/schema/log-schema.ts'
import { isOvertaken, type LogHead, type NewLogEntry, readLogHead } from '../../db/tables/audit-log.ts'
import { appendLog } from '../../db/tables/log-append.ts'
import type { Writer } from '../../db/write/write.ts'
import { entriesOf, entryText } from './entry.ts'
import { type AuditLogMode, isCovered } from './mode.ts'
import type { RecentTiles } from './recent-tiles.ts'
import { hashLeafText } from './transparency/merkle.ts'
import { nodesFor } from './tree.ts'

/** `reader`: for rows to cover, of which the event loop need not wait. `recent` takes what was appended. `isOver`: ends this between two commits. */
export type AppendContext = {
  orm: Orm
  reader: Orm
  writer: Pick<Writer, 'write'>
  mode: AuditLogMode
  recent?: Pick<RecentTiles, 'add'> | undefined
  isOver?: () => boolean
}

/** Rows of each table in one commit: a few milliseconds of work. */
const rowsAtOnce = 400

/**
 * Appends leaves for all rows that have none when it begins; those that come meanwhile wait for the next call. Stops early if another
 * node does the same at the moment.
 * @returns the number of leaves
 */
export async function appendRows({
  orm,
  reader,
  writer,
  mode,
  recent,
  isOver = () => false,
}: AppendContext): Promise<number> {
  let head = await readLogHead(orm)
  const last = await readLastRowIds(orm)
  let lastTile: Uint8Array[] | undefined
  while (!isOver()) {
    await nextSlice()
    const { entries, positions } = await plan(reader, mode, head, last)
    if (entries.length === 0) return head.size
    const texts = entries.map(entryText)
    const hashes = texts.map(hashLeafText)
    const { nodes, last: tile } = await nodesFor(orm, head.size, hashes, lastTile)
    lastTile = tile
    try {
      await writer.write(appendLog(entries, nodes, { before: head.positions, after: positions }))
    } catch (error) {
      if (!isOvertaken(error)) throw error
      return (await readLogHead(orm)).size
    }
    recent?.add(head.size, texts, hashes)
    head = { size: head.size + entries.length, positions: { ...head.positions, ...positions } }
  }
  return head.size
}

/** Rows that have no leaf yet, of each table that the log covers. */
async function plan(reader: Orm, mode: AuditLogMode, { size, positions }: LogHead, until: LogHead['positions']) {
  const entries: NewLogEntry[] = []
  const covered: Partial<Record<LogSource, number>> = {}
  for (const source of logSources) {
    if (!isCovered(source, mode)) continue
    const rows: LoggedRow[] = await readLoggedRows(reader, source, {
      after: positions[source],
      last: until[source],
      most: rowsAtOnce,
    })
    const last = rows.at(-1)
    if (last === undefined) continue
    entries.push(...entriesOf(source, rows, size + entries.length))
    covered[source] = last.id
  }
  return { entries, positions: covered }
}
