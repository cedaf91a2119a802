// What the commands that print reports share: how much and since when, the table, and the way to its next page.
import type { Command } from 'commander'
import { reportRowsDefault } from '../src/limits.ts'
import { type Arguments, isNarrowed, momentText, nothingMatches, wholeNumber } from './command-line.ts'
import { type Column, table } from './table.ts'

/** What every report takes. */
export function reportOptions(made: Command): Command {
  return made
    .option('--organization <organization>', 'only this organization, by name or id')
    .option('--since <time>', 'from this time on, e.g. 2026-11-21T09:30:00Z or 24h', momentText as never)
    .option('--limit <rows>', 'at most this many rows (default: 50)', wholeNumber as never)
    .option('--before-id <id>', 'only rows before this id: the next page', wholeNumber as never)
}

export function reportInput({ options }: Arguments): Record<string, unknown> {
  return { organization: options.organization, since: options.since, limit: options.limit, before_id: options.beforeId }
}

const filters = ['since', 'organization', 'beforeId', 'outcome', 'key']

/** A report as a table, told apart from an empty one by what was asked, with the way to the next page. */
export function drawReport<Row extends { id: number }>(
  rows: Row[],
  columns: Column<Row>[],
  { options }: Arguments,
): string {
  const { limit = reportRowsDefault } = options
  const drawn = table(rows, columns, isNarrowed(options, filters) ? nothingMatches : 'Nothing yet')
  const last = rows.at(-1)
  return last === undefined || rows.length < Number(limit) ? drawn : `${drawn}\nMore may follow: --before-id ${last.id}`
}
