// Shared by the commands that print reports: filters, the table, and the option for the next page.
import type { Command } from 'commander'
import { reportRowsDefault } from '../../src/limits.ts'
import { type Arguments, isNarrowed, nothingMatches } from './command-line.ts'
import { momentText, wholeNumber } from './option-values.ts'
import { moment } from './render.ts'
import { type Column, table } from './table.ts'

/** Adds the filters of both the audit and the usage ledger. */
export function traitOptions(made: Command): Command {
  return made
    .option('--key <key>', 'only this key, by name, id or hash; give a deleted key by id')
    .option('--policy <policy>', 'only this policy, by name or id; give a deleted policy by id')
    .option('--issuer <issuer>', 'only tokens of this issuer, by name or id; give a deleted issuer by id')
    .option('--subject <subject>', 'only tokens of this subject')
}

export function traitInput({ options: { key, policy, issuer, subject } }: Arguments): Record<string, unknown> {
  return { key, policy, issuer, subject }
}

/** Adds the options of every report. */
export function reportOptions(made: Command): Command {
  return made
    .option('--organization <organization>', 'only this organization, by name or id')
    .option(
      '--since <time>',
      'only since this time, such as 2026-11-21T09:30:00Z or 24h for the last 24 hours',
      momentText,
    )
    .option('--until <time>', 'only before this time, such as 2026-11-21T10:30:00Z', momentText)
    .option('--limit <rows>', 'maximum number of rows (default: 50)', wholeNumber)
    .option('--before-id <id>', 'only rows before this id, for the next page', wholeNumber)
}

export function reportInput({ options }: Arguments): Record<string, unknown> {
  const { organization, since, until, limit, beforeId } = options
  return { organization, since, until, limit, before_id: beforeId }
}

type ArchivedFiles = readonly { file: string; from: string; to: string }[]
const filesShownMax = 3

/** A line on the archives with rows of the time that a report covers, or nothing. */
export function archivedLines(archived: ArchivedFiles = []): string[] {
  if (archived.length === 0) return []
  const shown = archived
    .slice(0, filesShownMax)
    .map(({ file, from, to }) => `${file} (${moment(from)} to ${moment(to)})`)
  const more =
    archived.length > filesShownMax ? ` and ${archived.length - filesShownMax} more; see: latchkey archive list` : ''
  return [`Rows of this time are also in archives: ${shown.join(', ')}${more}`]
}

const traits = ['key', 'policy', 'issuer', 'subject']
const ofRequests = ['model', 'attribution', 'upstream', 'httpStatus', 'result']
const ofExchanges = ['outcome', 'reason', 'grant']
const ofChanges = ['changedBy', 'kind', 'group']
const ofAlerts = ['type']
const ofTime = ['since', 'until', 'beforeId']
const filters = [...traits, ...ofRequests, ...ofExchanges, ...ofChanges, ...ofAlerts, ...ofTime, 'organization']

/** Distinguishes an empty report from one in which no row matches the filters. */
export function whenEmpty({ options }: Arguments, nothing: string): string {
  return isNarrowed(options, filters) ? nothingMatches : nothing
}

type SearchResult = { data: readonly unknown[]; more_before_id?: number | null }

/** A line on the older rows that a search did not reach, or nothing. A full page has the line of `drawReport`. */
export function notSearchedLines(
  rows: string,
  { data, more_before_id: before }: SearchResult,
  given: Arguments,
): string[] {
  if (before === undefined || before === null || data.length >= limitOf(given)) return []
  return [`Older ${rows} were not searched. To continue: --before-id ${before}`]
}

function limitOf({ options }: Arguments): number {
  return Number(options.limit ?? reportRowsDefault)
}

/** Draws a report as a table, with the option that shows the next page. */
export function drawReport<Row extends { id: number }>(
  rows: Row[],
  columns: Column<Row>[],
  given: Arguments,
  limit: unknown = limitOf(given),
): string {
  const drawn = table(rows, columns, whenEmpty(given, 'No rows yet'))
  const last = rows.at(-1)
  return last === undefined || rows.length < Number(limit)
    ? drawn
    : `${drawn}\nThere may be more rows. To continue: --before-id ${last.id}`
}
