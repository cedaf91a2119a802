// `latchkey audit`: every exchange with its outcome and, if it was refused, the reason that the caller was not told.
import type { Command } from 'commander'
import { type Arguments, command, operationCommand, runAlone } from './shared/command-line.ts'
import { moment, record } from './shared/render.ts'
import { drawReport, reportInput, reportOptions, traitInput, traitOptions } from './shared/reports.ts'
import { stateTone } from './shared/terminal.ts'

type Exchange = {
  id: number
  at: string
  request_id: string
  outcome: string
  step: string | null
  reason: string | null
  detail: string | null
  policy_name: string | null
  policy_named: string | null
  issuer_url: string | null
  subject: string | null
  client_address: string | null
}

type Exchanges = { data: Exchange[]; more_before_id?: number }

function drawExchanges({ data, more_before_id }: Exchanges, given: Arguments): string {
  const drawn = drawReport(
    data,
    [
      ['TIME (UTC)', (row) => moment(row.at)],
      ['OUTCOME', (row) => row.outcome, stateTone],
      ['STEP', (row) => row.step],
      ['REASON', (row) => (row.detail === null ? row.reason : `${row.reason} (${row.detail})`)],
      ['POLICY', (row) => row.policy_name ?? row.policy_named],
      ['SUBJECT', (row) => row.subject],
      ['ISSUER', (row) => row.issuer_url],
      ['FROM', (row) => row.client_address],
      ['REQUEST ID', (row) => row.request_id],
    ],
    given,
  )
  return more_before_id === undefined
    ? drawn
    : `${drawn}\nOlder exchanges were not looked at; to go on: --before-id ${more_before_id}`
}

export function auditCommand(): Command {
  const made = command('audit', 'List exchanges, newest first, with outcome and reason', [
    'audit',
    'audit --outcome refused --since 1h',
    'audit --policy ci --reason audience_mismatch',
    'audit --json --limit 1000',
  ])
    .option('--outcome <outcome>', 'issued or refused')
    .option('--reason <reason>', 'only refused for this reason')
  const list = operationCommand(
    reportOptions(traitOptions(made)),
    'audit.list',
    (given) => {
      const { outcome, reason } = given.options
      return { ...reportInput(given), ...traitInput(given), outcome, reason }
    },
    drawExchanges,
  )
  const show = command(
    'show <request-id>',
    'Show an exchange or an inference request, by the x-request-id of its response',
    ['audit show 01a1feb6-0bde-7947-b3a3-0ae6b3f500f6'],
  )
  const changes = command('changes', 'List what admins changed, newest first: who, what, before and after', [
    'audit changes',
    'audit changes --json --since 24h',
  ])
  list.addCommand(
    operationCommand(reportOptions(changes), 'audit.changes', reportInput, ({ data }: { data: Change[] }, given) =>
      drawReport(
        data,
        [
          ['TIME (UTC)', (row) => moment(row.at)],
          ['BY', whoOf],
          ['OPERATION', (row) => row.operation],
          [
            'WHAT',
            ({ kind, after, before }) =>
              `${kind.replace('_', ' ')} ${after?.slug ?? after?.name ?? before?.name ?? ''}`.trimEnd(),
          ],
          ['CHANGED', differenceOf],
          ['ID', (row) => row.target_id],
        ],
        given,
      ),
    ),
  )
  return list.addCommand(
    operationCommand(
      show,
      'audit.show',
      ({ words }) => ({ request_id: words[0] }),
      (row: Record<string, unknown>) => record(row),
    ),
  )
}

type Change = {
  id: number
  at: string
  actor: string
  actor_key_id: string | null
  actor_key_name: string | null
  os_user: string | null
  sudo_user: string | null
  operation: string
  kind: string
  target_id: string
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
}

function whoOf({ actor, actor_key_name, os_user, sudo_user }: Change): string {
  if (os_user === null) return actor_key_name ?? actor
  return `${actor} (${os_user}${sudo_user === null ? '' : `, sudo by ${sudo_user}`})`
}

/** The fields that differ, with their values before and after. */
function differenceOf({ before, after }: Change): string {
  if (before === null) return 'new'
  if (before.deleted_at === null && typeof after?.deleted_at === 'string') return 'deleted'
  return Object.entries(after ?? {})
    .filter(([name, value]) => name !== 'updated_at' && JSON.stringify(before[name]) !== JSON.stringify(value))
    .map(([name, value]) => `${name}: ${before[name] ?? '-'} → ${value ?? '-'}`)
    .join(', ')
}

if (import.meta.main) await runAlone(auditCommand())
