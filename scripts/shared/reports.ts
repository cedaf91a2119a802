// What the commands that print reports share: how much and since when, the table, and the way to its next page.
import type { Command } from 'commander'
import { reportRowsDefault } from '../../src/limits.ts'
import { type Arguments, isNarrowed, nothingMatches } from './command-line.ts'
import { momentText, wholeNumber } from './option-values.ts'
import { type Column, table } from './table.ts'

/** What narrows both the audit and the ledger. */
export function traitOptions(made: Command): Command {
  return made
    .option('--key <key>', 'only of this key, by name, id or hash; a deleted one by id')
    .option('--policy <policy>', 'only under this policy, by name or id; a deleted one by id')
    .option('--issuer <issuer>', 'only with tokens of this issuer, by name or id; a deleted one by id')
    .option('--subject <subject>', 'only with tokens of this subject')
}

export function traitInput({ options: { key, policy, issuer, subject } }: Arguments): Record<string, unknown> {
  return { key, policy, issuer, subject }
}

/** What every report takes. */
export function reportOptions(made: Command): Command {
  return made
    .option('--organization <organization>', 'only this organization, by name or id')
    .option('--since <time>', 'from this time on, e.g. 2026-11-21T09:30:00Z or 24h', momentText)
    .option('--limit <rows>', 'at most this many rows (default: 50)', wholeNumber)
    .option('--before-id <id>', 'only rows before this id: the next page', wholeNumber)
}

export function reportInput({ options }: Arguments): Record<string, unknown> {
  return { organization: options.organization, since: options.since, limit: options.limit, before_id: options.beforeId }
}

const traits = ['key', 'policy', 'issuer', 'subject']
const filters = [...traits, 'since', 'until', 'organization', 'beforeId', 'outcome', 'reason']

/** An empty report and one that a filter left empty read differently. */
export function whenEmpty({ options }: Arguments, nothing: string): string {
  return isNarrowed(options, filters) ? nothingMatches : nothing
}

/** A report as a table, with the way to the next page. */
export function drawReport<Row extends { id: number }>(rows: Row[], columns: Column<Row>[], given: Arguments): string {
  const { limit = reportRowsDefault } = given.options
  const drawn = table(rows, columns, whenEmpty(given, 'Nothing yet'))
  const last = rows.at(-1)
  return last === undefined || rows.length < Number(limit) ? drawn : `${drawn}\nMore may follow: --before-id ${last.id}`
}
