// Adds to responses when something last worked and was last refused, and selects what was not used for long.
import { filterInSlices } from '../../../db/read/pace.ts'
import { neverUsedAgeMilliseconds } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import type { Needs } from './context.ts'
import { timeOf } from './references.ts'

const timeOrNull = type('string').configure({ format: 'date-time' }).or('null')
/** Part of what show and list return. */
export const lastUseFields = {
  'last_used_at?': timeOrNull,
  'last_refused_at?': timeOrNull,
  'last_refused_reason?': 'string | null',
} as const

export type UnusedInput = { unused_since?: Date; never_used?: boolean }

export type LastUse = {
  last_used_at?: string | null
  last_refused_at?: string | null
  last_refused_reason?: string | null
}

/** The same rows with their last use, in the same order. */
export async function withLastUse<Row extends { id: string }>(
  { lastUses }: Needs<'lastUses'>,
  rows: readonly Row[],
): Promise<(Row & LastUse)[]> {
  const uses = await lastUses.read(rows.map(({ id }) => id))
  return rows.map((row) => {
    const { usedAt = null, refusedAt = null, refusedReason = null } = uses.get(row.id) ?? {}
    return {
      ...row,
      last_used_at: timeOf(usedAt),
      last_refused_at: timeOf(refusedAt),
      last_refused_reason: refusedReason,
    }
  })
}

/** Whether the list is of what is not used. */
export const isOfUnused = ({ unused_since, never_used = false }: UnusedInput) =>
  unused_since !== undefined || never_used

type LastWork = { usedAt: number | null; createdAt: number }

/** Whether it has not worked since a time, or never although it is old enough. Times in milliseconds. */
function isUnused({ usedAt, createdAt }: LastWork, { unused_since, never_used = false }: UnusedInput, now: number) {
  return (
    (unused_since === undefined || (usedAt ?? createdAt) < unused_since.getTime()) &&
    (!never_used || (usedAt === null && createdAt <= now - neverUsedAgeMilliseconds))
  )
}

/** Keeps rows that have not worked since a time, or never although they are old enough. `now` in milliseconds. */
export function onlyUnused<Row extends LastUse & { created_at: string }>(
  rows: Row[],
  asked: UnusedInput,
  now: number,
): Row[] {
  return rows.filter(({ created_at, last_used_at = null }) => {
    const usedAt = last_used_at === null ? null : Date.parse(last_used_at)
    return isUnused({ usedAt, createdAt: Date.parse(created_at) }, asked, now)
  })
}

/** The same of rows that nobody has read, in slices. Those that are gone are left out. */
export async function onlyUnusedIds(
  { lastUses, now }: Needs<'lastUses' | 'now'>,
  ids: readonly string[],
  asked: UnusedInput,
  createdAt: (id: string) => number | undefined,
): Promise<string[]> {
  const uses = await lastUses.read(ids)
  return filterInSlices(ids, (id) => {
    const created = createdAt(id)
    return created !== undefined && isUnused({ usedAt: uses.get(id)?.usedAt ?? null, createdAt: created }, asked, now())
  })
}
