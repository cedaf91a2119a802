// What every key has spent when a process starts, while other nodes go on writing usage rows.
import type { Orm } from '../../db/file/open.ts'
import { listSpentDays, listSpentSince } from '../../db/tables/usage.ts'
import { createSpending, type Spending } from '../keys/spending.ts'

const rowsAtOnce = 5_000

/**
 * Loads the totals, and adds the rows that they did not include when the slice with their key was read: each row counts once. `usageId`: the
 * newest row that was added.
 */
export async function loadSpending(orm: Orm, now: number): Promise<{ spending: Spending; usageId: number }> {
  const slices: { lastKeyId: string | null; usageId: number }[] = []
  const days = await listSpentDays(orm, (lastKeyId, usageId) => slices.push({ lastKeyId, usageId }))
  const spending = createSpending(days, now)
  const readUntil = (keyId: string) =>
    slices.find(({ lastKeyId }) => lastKeyId === null || keyId <= lastKeyId)?.usageId ?? 0
  let usageId = Math.min(...slices.map((slice) => slice.usageId))
  for (let isMore = true; isMore; ) {
    const rows = await listSpentSince(orm, usageId, rowsAtOnce)
    for (const { id, keyId, at, cost } of rows) if (id > readUntil(keyId)) spending.add(keyId, at, cost ?? 0)
    usageId = rows.at(-1)?.id ?? usageId
    isMore = rows.length === rowsAtOnce
  }
  return { spending, usageId }
}
