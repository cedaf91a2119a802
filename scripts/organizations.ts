// `latchkey organizations` and `latchkey workspaces`.
import { type Command, Option } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { command, group, runAlone } from './shared/command-line.ts'
import { operationCommand } from './shared/operation-command.ts'
import { removable } from './shared/option-values.ts'
import { moment, record } from './shared/render.ts'
import { table } from './shared/table.ts'

type Organization = OperationResponse<'organizations.create'>

const show = ({ id, name, plan, workload_identity, record_claims, ...row }: Organization) =>
  record({
    ...{ id, name, plan, 'workload identity': workload_identity ? 'yes' : 'no', 'recorded claims': record_claims },
    ...{ 'time zone': row.time_zone ?? 'UTC', 'budget headers': row.budget_headers ? 'on' : 'off' },
    'upstream headers': row.upstream_headers ? 'on' : 'off',
  })

const recordClaims = () =>
  new Option('--record-claims <which>', 'claims of verified tokens that the audit log keeps').choices([
    'off',
    'hashed',
    'selected',
    'all',
  ])

export function organizationsCommand(): Command {
  return group('organizations', 'Organizations and their plans; workload identity requires business or enterprise', [
    operationCommand(
      command('create <name>', 'Create an organization with a default workspace', [
        'organizations create research',
        'organizations create trial --plan free',
      ])
        .option('--plan <plan>', 'free, business or enterprise (default: enterprise)')
        .addOption(recordClaims()),
      'organizations.create',
      ({ words, options }) => ({ name: words[0], plan: options.plan, record_claims: options.recordClaims }),
      show,
    ),
    operationCommand(
      command('list', 'List the organizations', ['organizations list', 'organizations list --json']),
      'organizations.list',
      () => ({}),
      ({ data }) =>
        table(
          data,
          [
            ['NAME', (row) => row.name],
            ['PLAN', (row) => row.plan],
            ['WORKLOAD IDENTITY', (row) => (row.workload_identity ? 'yes' : 'no')],
            ['RECORDED CLAIMS', (row) => row.record_claims],
            ['ID', (row) => row.id],
            ['CREATED (UTC)', (row) => moment(row.created_at)],
          ],
          'No organizations',
        ),
    ),
    operationCommand(
      command('plan <organization> <plan>', 'Change the plan; free stops new exchanges immediately', [
        'organizations plan research business',
      ]),
      'organizations.plan',
      ({ words }) => ({ organization: words[0], plan: words[1] }),
      show,
    ),
    operationCommand(
      command('update <organization>', 'Change the settings of an organization; takes effect immediately', [
        'organizations update research --record-claims hashed',
        'organizations update research --time-zone Europe/Berlin --budget-headers',
      ])
        .addOption(recordClaims())
        .option('--time-zone <zone>', 'where days, weeks and months of budgets begin, such as Europe/Berlin')
        .option('--no-time-zone', 'begin them in UTC')
        .option('--budget-headers', 'add what remains of budgets to responses as headers')
        .option('--no-budget-headers', 'leave these headers out')
        .option('--upstream-headers', 'add the upstream and the number of the attempt to responses as headers')
        .option('--no-upstream-headers', 'leave these headers out'),
      'organizations.update',
      ({ words, options }) => ({
        organization: words[0],
        record_claims: options.recordClaims,
        time_zone: removable(options.timeZone),
        budget_headers: options.budgetHeaders,
        upstream_headers: options.upstreamHeaders,
      }),
      show,
    ),
  ])
}

export function workspacesCommand(): Command {
  const organization: [string, string] = ['--organization <organization>', 'organization, by name or id']
  return group('workspaces', 'Workspaces, which contain keys and presets', [
    operationCommand(
      command('create <name>', 'Create a workspace', ['workspaces create staging']).option(...organization),
      'workspaces.create',
      ({ words, options }) => ({ name: words[0], organization: options.organization }),
      ({ id, name }) => record({ id, name }),
    ),
    operationCommand(
      command('list', 'List the workspaces', ['workspaces list']).option(...organization),
      'workspaces.list',
      ({ options }) => ({ organization: options.organization }),
      ({ data }) =>
        table(
          data,
          [
            ['NAME', (row) => row.name],
            ['ID', (row) => row.id],
            ['CREATED (UTC)', (row) => moment(row.created_at)],
          ],
          'No workspaces',
        ),
    ),
  ])
}

if (import.meta.main) await runAlone(organizationsCommand())
