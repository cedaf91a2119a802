// `latchkey usage`: totals of requests, tokens and cost, or single requests; as a table, JSON or CSV.
import { type Command, Option } from 'commander'
import { usageGroupings } from '../db/schema/usage-groupings.ts'
import { requestResults } from '../db/tables/usage.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { Fault } from '../src/fault.ts'
import { type Arguments, command, runAlone } from './shared/command-line.ts'
import { operationCommand } from './shared/operation-command.ts'
import { wholeNumber } from './shared/option-values.ts'
import { bar, csv, dollars, moment } from './shared/render.ts'
import {
  archivedLines,
  drawReport,
  notSearchedLines,
  reportInput,
  reportOptions,
  traitInput,
  traitOptions,
  whenEmpty,
} from './shared/reports.ts'
import { table } from './shared/table.ts'
import { stateTone } from './shared/terminal.ts'

type Sum = OperationResponse<'usage.sum'>['data'][number]
type Request = OperationResponse<'usage.requests'>['data'][number]

export function usageCommand(): Command {
  const made = command('usage', 'Show requests, tokens and cost', [
    'usage',
    'usage --by model --since 7d',
    'usage --by attribution --since 30d --csv > usage.csv',
    'usage --by label:team --since 30d',
    'usage --requests --policy ci --since 24h',
    'usage --requests --result failed --model llama-3.1-8b',
  ])
    .addOption(groupingOption())
    .option('--requests', 'list single requests, newest first, with policy, issuer, subject and request id')
    .option('--model <model>', 'with --requests: only those for this model, or that it responded to')
    .option('--attribution <value>', 'with --requests: only those that are attributed to this value')
    .option('--upstream <upstream>', 'with --requests: only those that this inference server got')
    .option('--http-status <code>', 'with --requests: only responses with this status', wholeNumber)
    .addOption(new Option('--result <result>', 'with --requests: only those that ended so').choices(requestResults))
    .option('--csv', 'print CSV')
  const refused = command('refused', 'Show which requests were refused before any server got them, by key and reason', [
    'usage refused',
    'usage refused --key ci --json',
  ])
    .option('--organization <organization>', 'only this organization, by name or id')
    .option('--key <key>', 'only this key, by name, id or hash')
  const verify = command('verify', "Check that each key's totals match its requests", ['usage verify'])
  const list = operationCommand(
    reportOptions(traitOptions(made)),
    ({ options }) => (options.requests ? 'usage.requests' : 'usage.sum'),
    (given) => ({
      ...reportInput(given),
      ...traitInput(given),
      ...(given.options.requests ? requestFilters(given) : sumGrouping(given)),
    }),
    (response, given) => {
      const lines = [...notSearchedLines('requests', response, given), ...archivedLines(response.archived)]
      if (given.options.csv) {
        // Standard output has only rows.
        for (const line of lines) process.stderr.write(`latchkey: ${line}\n`)
        return csv('more_before_id' in response ? response.data : response.data.map(withKnownCost))
      }
      const drawn = 'more_before_id' in response ? drawRequests(response.data, given) : drawSums(response.data, given)
      return [drawn, ...lines].join('\n')
    },
  )
  const refusedInput = ({ options: { organization, key } }: Arguments) => ({ organization, key })
  return list
    .addCommand(operationCommand(verify, 'usage.verify', () => ({}), drawVerified, { isNegative: ({ ok }) => !ok }))
    .addCommand(operationCommand(refused, 'usage.refused', refusedInput, drawRefused))
}

function requestFilters({ options: { model, attribution, upstream, httpStatus, result } }: Arguments) {
  return { model, attribution, upstream, status: httpStatus, result }
}

/** @throws Fault `usage` for a filter that totals do not have */
function sumGrouping(given: Arguments) {
  const [filter] = Object.entries(requestFilters(given)).find(([, value]) => value !== undefined) ?? []
  if (filter !== undefined)
    throw new Fault(
      'usage',
      `--${filter === 'status' ? 'http-status' : filter} selects single requests: add --requests`,
    )
  return { by: given.options.by }
}

function drawRefused({ since, data }: OperationResponse<'usage.refused'>): string {
  const rows = table(
    data,
    [
      ['KEY', (row) => row.key_name ?? row.key_id],
      ['STATUS', (row) => row.status, stateTone],
      ['REASON', (row) => row.reason],
      ['REQUESTS (24 H)', (row) => row.requests],
      ['LAST (UTC)', (row) => moment(row.last_at)],
      ['MODEL', (row) => row.samples[0]?.model ?? null],
      ['LAST REQUEST ID', (row) => row.samples[0]?.request_id ?? null],
    ],
    'Nothing was refused',
  )
  return `${rows}\nCounted by this node since ${moment(since)}`
}

function drawVerified({ ok, data, archived = [] }: OperationResponse<'usage.verify'>): string {
  const skipped =
    archived.length === 0
      ? []
      : ['Days with archived requests were not compared; latchkey archive verify checks the archives']
  const result = ok
    ? "Each key's totals match its requests"
    : `The totals of ${data.length} ${data.length === 1 ? 'day' : 'days'} do not match the requests:`
  const rows = table(
    data,
    [
      ['DAY', ({ day }) => day],
      ['KEY ID', ({ key_id }) => key_id],
    ],
    '',
  )
  return [result, ...(ok ? [] : [rows]), ...skipped].join('\n')
}

/** Bars are drawn only on a terminal. */
function drawSums(rows: Sum[], given: Arguments): string {
  const most = Math.max(...rows.map((row) => row.total_tokens))
  return table(
    rows,
    [
      ['USED BY', nameOf],
      ['REQUESTS', (row) => row.requests],
      ['PROMPT TOKENS', (row) => row.prompt_tokens],
      ['COMPLETION TOKENS', (row) => row.completion_tokens],
      ['TOTAL TOKENS', (row) => row.total_tokens],
      ['COST (USD)', costOf],
      ['LAST USED (UTC)', (row) => moment(row.last_used_at)],
      ...(process.stdout.isTTY
        ? [['', (row: Sum) => bar(row.total_tokens, most)] as [string, (row: Sum) => string]]
        : []),
    ],
    whenEmpty(given, 'No usage yet'),
  )
}

/** A cost of which nothing is known is empty in a file, as in that of the page. */
function withKnownCost(sum: Sum) {
  return sum.cost === 0 && sum.requests_without_cost > 0 ? { ...sum, cost: null } : sum
}

/** The known cost, and the number of requests whose cost is unknown. */
function costOf({ cost, requests, requests_without_cost }: Sum): string | null {
  if (requests_without_cost === requests) return null
  return `${dollars(cost)}${requests_without_cost === 0 ? '' : ` (${requests_without_cost} unknown)`}`
}

/** An error is a whole response, although nothing was completed. */
function statusOf({ status, completed, client_left }: Request): string {
  if (client_left) return `${status} client left`
  return completed || status >= 400 ? String(status) : `${status} incomplete`
}

/** The least value of a stream that did not end has a mark. */
function tokensOf({ total_tokens, estimated }: Request): string | number | null {
  return estimated ? `at least ${total_tokens}` : total_tokens
}

function nameOf(row: Sum): string {
  const { key_name, key_deleted, policy_name, subject, issuer_url, model, preset_version, upstream, day } = row
  const { attribution, label, user, session_id } = row
  if (attribution !== undefined) return String(attribution ?? '(not attributed)')
  if (label !== undefined) return String(label ?? '(no label)')
  if (user !== undefined) return String(user ?? '(no user)')
  if (session_id !== undefined) return String(session_id ?? '(no session)')
  if (key_name !== undefined) return `${key_name}${key_deleted ? ' (deleted)' : ''}`
  if (subject !== undefined) return subject === null ? '(keys themselves)' : `${subject} of ${issuer_url}`
  if (policy_name !== undefined) return String(policy_name ?? '(keys themselves)')
  if (preset_version !== undefined) return String(preset_version ?? '(no preset)')
  return String(day ?? model ?? upstream ?? '(unknown)')
}

function drawRequests(rows: Request[], given: Arguments): string {
  return drawReport(
    rows,
    [
      ['TIME (UTC)', (row) => moment(row.at)],
      ['KEY', (row) => row.key_name],
      ['MODEL', (row) => row.model ?? row.model_asked],
      ...(rows.some((row) => row.preset_version !== null)
        ? [['PRESET', (row: Request) => row.preset_version] as [string, (row: Request) => unknown]]
        : []),
      ['UPSTREAM', (row) => row.upstream],
      ...(rows.some(({ attempts }) => (attempts ?? 1) > 1)
        ? [['ATTEMPT', (row: Request) => row.attempts] as [string, (row: Request) => unknown]]
        : []),
      ['STATUS', statusOf, stateTone],
      ...(rows.some(({ error }) => error !== null)
        ? [['ERROR', (row: Request) => row.error] as [string, (row: Request) => unknown]]
        : []),
      ['TOKENS', tokensOf],
      ['COST (USD)', (row) => (row.cost === null ? null : dollars(row.cost))],
      ['POLICY', (row) => row.policy_name],
      ['SUBJECT', (row) => row.subject],
      ['ATTRIBUTION', (row) => row.attribution],
      ['ISSUER', (row) => row.issuer_url],
      ['REQUEST ID', (row) => row.request_id],
    ],
    given,
  )
}

if (import.meta.main) await runAlone(usageCommand())

/** Shells suggest the groupings; the parser accepts labels too. */
function groupingOption(): Option {
  const grouping = new Option('--by <what>', 'group the totals by one of these, or by label:NAME of the keys').default(
    'key',
  )
  grouping.argChoices = [...usageGroupings]
  return grouping
}
