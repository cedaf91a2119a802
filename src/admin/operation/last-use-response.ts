// Adds to responses when something last worked and was last refused, and selects what was not used for long.
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

/** Keeps rows that have not worked since a time, or never although they are old enough. `now` in milliseconds. */
export function onlyUnused<Row extends LastUse & { created_at: string }>(
  rows: Row[],
  { unused_since, never_used = false }: UnusedInput,
  now: number,
): Row[] {
  const madeUntil = now - neverUsedAgeMilliseconds

  return rows.filter(
    ({ created_at, last_used_at = null }) =>
      (unused_since === undefined || new Date(last_used_at ?? created_at) < unused_since) &&
      (!never_used || (last_used_at === null && Date.parse(created_at) <= madeUntil)),
  )
}
