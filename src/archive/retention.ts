// How long rows stay in the database: the settings, and the times that follow from them. Rules only.
import { resolve } from 'node:path'
import type { ArchiveKind } from '../../db/schema/archive-kinds.ts'
import { Fault } from '../fault.ts'

/** Ages in days at which rows are archived, undefined to keep them, and the folder of archives. */
export type Retention = Readonly<{ days: Partial<Record<ArchiveKind, number>>; folder: string | undefined }>

type RetainSetting = 'LATCHKEY_RETAIN_EXCHANGES_DAYS' | 'LATCHKEY_RETAIN_USAGE_DAYS'

/**
 * Zero days keep the rows. `daysOf` reads a setting, and `dir` is the text of the folder.
 * @throws Fault `configuration` when rows have an age but no folder
 */
export function retentionOf(daysOf: (name: RetainSetting, min: number) => number, dir: string | undefined): Retention {
  const folder = dir && resolve(dir)
  const [exchangesDays, usageDays] = [
    daysOf('LATCHKEY_RETAIN_EXCHANGES_DAYS', 0),
    daysOf('LATCHKEY_RETAIN_USAGE_DAYS', 0),
  ]
  const days = { ...(exchangesDays > 0 && { exchanges: exchangesDays }), ...(usageDays > 0 && { usage: usageDays }) }
  if (folder !== undefined || Object.keys(days).length === 0) return { days, folder }
  const set = exchangesDays > 0 ? 'LATCHKEY_RETAIN_EXCHANGES_DAYS' : 'LATCHKEY_RETAIN_USAGE_DAYS'
  throw new Fault(
    'configuration',
    `${set} is set without LATCHKEY_ARCHIVE_DIR: set it to the folder that gets the archives`,
  )
}

const dayMilliseconds = 24 * 60 * 60 * 1_000

/** Whole days in UTC leave together, so that `usage verify` compares every other day with all its rows. */
export function dueTimes({ days }: Retention, now: number): Partial<Record<ArchiveKind, number>> {
  const startOfDay = now - (now % dayMilliseconds)
  return Object.fromEntries(Object.entries(days).map(([kind, age]) => [kind, startOfDay - age * dayMilliseconds]))
}
