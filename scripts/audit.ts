// `latchkey audit`: every exchange with its outcome and, if it was refused, the reason, which the caller does not see. The commands of the
// transparent audit log are in audit-log.ts.
import { type Command, Option } from 'commander'
import { changeKinds, grantNames } from '../db/schema/record-schema.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { reportRowsMax } from '../src/limits.ts'
import { auditLogCommands } from './audit-log.ts'
import { type Arguments, command, runAlone } from './shared/command-line.ts'
import { operationCommand } from './shared/operation-command.ts'
import { moment, record } from './shared/render.ts'
import {
  archivedLines,
  drawReport,
  notSearchedLines,
  reportInput,
  reportOptions,
  traitInput,
  traitOptions,
} from './shared/reports.ts'
import { stateTone } from './shared/terminal.ts'

type Exchanges = OperationResponse<'audit.list'>

function drawExchanges(found: Exchanges, given: Arguments): string {
  const drawn = drawReport(
    found.data,
    [
      ['TIME (UTC)', (row) => moment(row.at)],
      ['OUTCOME', (row) => row.outcome, stateTone],
      ['STEP', (row) => row.step],
      ['REASON', (row) => (row.detail === null ? row.reason : `${row.reason} (${row.detail})`)],
      ['POLICY', (row) => row.policy_name ?? row.policy_named],
      ['SUBJECT', (row) => row.subject],
      ['ISSUER', (row) => row.issuer_url],
      ['GRANT', (row) => row.grant],
      ['FROM', (row) => row.client_address],
      ['REQUEST ID', (row) => row.request_id],
    ],
    given,
  )
  return [drawn, ...notSearchedLines('exchanges', found, given), ...archivedLines(found.archived)].join('\n')
}

export function auditCommand(): Command {
  const made = command('audit', 'List exchanges, newest first, with outcome and reason', [
    'audit',
    'audit --outcome refused --since 1h',
    'audit --since 2026-11-21T09:30:00Z --until 2026-11-21T10:30:00Z',
    'audit --policy ci --reason audience_mismatch',
    'audit --grant jwt-bearer',
    'audit --json --limit 1000',
  ])
    .option('--outcome <outcome>', 'issued or refused')
    .option('--reason <reason>', 'only exchanges refused for this reason')
    .addOption(new Option('--grant <grant>', 'only exchanges by this grant').choices(grantNames))
  const list = operationCommand(
    reportOptions(traitOptions(made)),
    'audit.list',
    (given) => {
      const { outcome, reason, grant } = given.options
      return { ...reportInput(given), ...traitInput(given), outcome, reason, grant }
    },
    drawExchanges,
  )
  const show = command('show <request-id>', 'Show an exchange or an inference request by its x-request-id', [
    'audit show 01a1feb6-0bde-7947-b3a3-0ae6b3f500f6',
  ])
  list.addCommand(changesCommand())
  for (const made of auditLogCommands()) list.addCommand(made)
  return list.addCommand(operationCommand(show, 'audit.show', ({ words }) => ({ request_id: words[0] }), record))
}

function changesCommand(): Command {
  const changes = command('changes', 'List the changes by administrators, newest first: who, what, before and after', [
    'audit changes',
    'audit changes --json --since 24h',
    'audit changes --kind document',
    'audit changes --changed-by alice --since 7d',
    'audit changes --group 7a52b3f6-9d0c-4b6e-8f5a-1c2d3e4f5a6b --json',
  ])
    .option('--changed-by <who>', 'only changes by this person, named by the subject of the token, or by this key')
    .option('--group <id>', 'all records of one change, such as that of a configuration document')
    .addOption(new Option('--kind <kind>', 'only changes of this kind of thing').choices(changeKinds))
    .addOption(new Option('--without-kind <kind>', 'no changes of this kind of thing').choices(changeKinds))
  return operationCommand(
    reportOptions(changes),
    'audit.changes',
    (given) => ({
      ...reportInput(given),
      ...wholeGroup(given),
      group: given.options.group,
      kind: given.options.kind,
      without_kind: given.options.withoutKind,
      by: given.options.changedBy,
    }),
    ({ data }, given) =>
      drawReport(
        data,
        [
          ['NUMBER', (row) => String(row.id)],
          ['TIME (UTC)', (row) => moment(row.at)],
          ['BY', whoOf],
          ['OPERATION', (row) => row.operation],
          ['WHAT', whatOf],
          ['CHANGED', differenceOf],
          ['TARGET ID', (row) => row.target_id],
          ['GROUP', (row) => row.group_id],
        ],
        given,
        wholeGroup(given).limit,
      ),
  )
}

/** Evidence must not end at the default number of rows. */
function wholeGroup({ options: { group, limit } }: Arguments) {
  return group === undefined || limit !== undefined ? {} : { limit: reportRowsMax }
}

type Change = OperationResponse<'audit.changes'>['data'][number]

function whoOf({ actor, actor_key_name, os_user, sudo_user }: Change): string {
  if (os_user === undefined || os_user === null) return actor_key_name ?? actor
  return `${actor} (${os_user}${(sudo_user ?? null) === null ? '' : `, sudo by ${sudo_user}`})`
}

function whatOf(change: Change): string {
  const [before, after] = [fieldsOf(change.before), fieldsOf(change.after)]
  return `${change.kind.replace('_', ' ')} ${after.slug ?? after.name ?? before.name ?? after.owner ?? ''}`.trimEnd()
}

/** The fields that differ, with their values before and after. */
function differenceOf(change: Change): string {
  if (change.kind === 'document') return documentOf(fieldsOf(change.before), fieldsOf(change.after))
  if (change.before === null) return 'new'
  const [before, after] = [fieldsOf(change.before), fieldsOf(change.after)]
  if (before.deleted_at === null && typeof after.deleted_at === 'string') return 'deleted'
  return Object.entries(after)
    .filter(([name, value]) => name !== 'updated_at' && JSON.stringify(before[name]) !== JSON.stringify(value))
    .map(([name, value]) => `${name}: ${before[name] ?? '-'} → ${value ?? '-'}`)
    .join(', ')
}

/** The revisions of a configuration document that were applied before and now. */
function documentOf(before: Record<string, unknown>, { revision, sha256, locked }: Record<string, unknown>): string {
  const file = typeof sha256 === 'string' ? [`sha256: ${sha256.slice(0, 12)}…`] : []
  const lock = (before.locked ?? false) === locked ? [] : [`owner_locks: ${locked}`]
  return [`revision: ${before.revision ?? '-'} → ${revision ?? '-'}`, ...file, ...lock].join(', ')
}

function fieldsOf(row: object | null): Record<string, unknown> {
  return { ...row }
}

if (import.meta.main) await runAlone(auditCommand())
