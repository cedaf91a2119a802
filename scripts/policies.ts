// `latchkey policies`: which tokens of an issuer are exchanged for access tokens of which key.
import { type Command, Option } from 'commander'
import { policyFields } from '../src/admin/kinds/policy.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { backtestCommand } from './shared/backtest.ts'
import { type Arguments, command, group, isNarrowed, nothingMatches, runAlone } from './shared/command-line.ts'
import { checkCommand } from './shared/explanations.ts'
import { fieldInput, fieldLines, fieldOptions } from './shared/field-options.ts'
import { drawDifference, drawFindings, exceptionsIn, isBlocked, lintCommand } from './shared/findings.ts'
import { answerIssuerQuestion } from './shared/issuer-question.ts'
import { pagedList, pageFilters } from './shared/list-pages.ts'
import { commandOnOne, inOrganization, operationCommand } from './shared/operation-command.ts'
import { testsCommand } from './shared/policy-tests.ts'
import { lastUse, managedBy, moment, record } from './shared/render.ts'
import { type Column, table } from './shared/table.ts'
import { stateTone } from './shared/terminal.ts'

type Policy = OperationResponse<'policies.show'>

const state = (policy: Policy) =>
  policy.state === 'inactive' ? `inactive: ${policy.inactive_reason?.replaceAll('_', ' ')}` : policy.state
const issuer = ({ issuer_url, issuer_deleted }: Policy) => `${issuer_url}${issuer_deleted ? ' (deleted)' : ''}`

const key = ({ key_name, key_deleted, key_disabled }: Policy) =>
  `${key_name}${key_deleted ? ' (deleted)' : key_disabled ? ' (disabled)' : ''}`

const show = (policy: Policy) =>
  record({
    ...fieldLines(policyFields, policy, {
      state: state(policy),
      issuer_url: issuer(policy),
      key_name: key(policy),
      tests: policy.tests?.map((each) => `${each.name} (${each.expect})`).join('; '),
      lint_exceptions: policy.lint_exceptions?.map(({ rule, because }) => `${rule}: ${because}`).join('; '),
    }),
    ...managedBy(policy),
    ...lastUse(policy),
  })

export function policiesCommand(): Command {
  return group('policies', 'Rules for which tokens of an issuer may act as which key', [
    createCommand(),
    listCommand(),
    checkCommand(),
    lintCommand(),
    testsCommand(),
    backtestCommand(),
    commandOnOne('policy', 'show', 'Show a policy', 'policies.show', show),
    updateCommand(),
    commandOnOne(
      'policy',
      'disable',
      'Stop new exchanges immediately; issued tokens stay valid until they expire',
      'policies.pause',
      show,
    ),
    commandOnOne('policy', 'enable', 'Allow exchanges under a paused policy again', 'policies.resume', show),
    commandOnOne(
      'policy',
      'delete',
      'Delete a policy; new exchanges stop immediately',
      'policies.delete',
      ({ id }) => `Deleted ${id}`,
    ),
  ])
}

function createCommand(): Command {
  const made = command('create', 'Create a policy', [
    'policies create --name ci --issuer github --audience https://llm.example.com --subject repo:acme/app:ref:refs/heads/main --key ci',
    'policies create --name batch --issuer idp --audience llm --subject svc-batch --require-scope inference --key batch --max-lifetime 5m',
  ]).option('--dry-run', 'check the policy without saving it')
  return operationCommand(
    ruleOptions(made, 'create'),
    'policies.create',
    (given) => ({ ...ruleInput(given), dry_run: given.options.dryRun }),
    (policy) =>
      'dry_run' in policy
        ? ['The policy is valid. Run this without --dry-run to save it.', ...drawFindings(policy.findings)].join('\n')
        : [
            show(policy),
            ...drawFindings(policy.findings),
            '',
            policy.role === null
              ? `Workloads send federation_policy_id=${policy.id} with every exchange.`
              : `People whom it accepts sign in to the admin page as ${policy.role}.`,
          ].join('\n'),
    { remedy: answerIssuerQuestion },
  )
}

function listCommand(): Command {
  const made = command('list', 'List the policies', [
    'policies list',
    'policies list --key ci',
    'policies list --unused 90d',
    'policies list --never-used',
    'policies list --contains deploy --limit 20',
  ])
    .option('--key <key>', 'only policies with this target key, by name, id or hash; give a deleted key by id')
    .option('--issuer <issuer>', 'only policies of this issuer, by name or id; give a deleted issuer by id')
    .addOption(new Option('--state <state>', 'only policies in this state').choices(['enabled', 'paused', 'inactive']))
  return pagedList(
    made,
    'policies.list',
    ({ options: { key, issuer, state } }) => ({ key, issuer, state }),
    (rows, { options }) =>
      table(
        rows,
        columns,
        isNarrowed(options, ['key', 'issuer', 'state', ...pageFilters])
          ? nothingMatches
          : 'No policies. To create one, see: latchkey policies create --help',
      ),
  )
}

const columns: Column<Policy>[] = [
  ['NAME', (row) => row.name],
  ['STATE', state, stateTone],
  ['ISSUER', issuer],
  ['AUDIENCE', (row) => row.audience],
  ['SUBJECT', (row) => row.subject],
  ['CONDITION', (row) => row.condition],
  ['KEY', key],
  ['LAST USED (UTC)', ({ last_used_at = null }) => moment(last_used_at)],
  ['ALLOWED', ({ lint_exceptions }) => lint_exceptions?.map(({ rule }) => rule).join(' ')],
  ['MANAGED BY', (row) => row.managed_by],
  ['ID', (row) => row.id],
]

function updateCommand(): Command {
  const made = command('update <policy>', 'Change a policy; takes effect immediately', [
    'policies update ci --subject repo:acme/app:environment:production',
    'policies update ci --condition "claims.repository_owner_id == \'162148032\'" --no-subject',
    'policies update batch --no-require-scope',
    'policies update ci --subject repo:acme/app:environment:production --dry-run',
  ])
  return operationCommand(
    ruleOptions(made, 'change').option(
      '--dry-run',
      'show which tokens would pass or no longer pass, without saving the change',
    ),
    'policies.update',
    (given) => ({ policy: given.words[0], ...ruleInput(given), dry_run: given.options.dryRun }),
    (policy) => [show(policy), ...drawDifference(policy.difference), ...drawFindings(policy.findings)].join('\n'),
    {
      isNegative: ({ dry_run, findings }) => dry_run === true && findings.some(isBlocked),
      remedy: answerIssuerQuestion,
    },
  )
}

function ruleOptions(made: Command, at: 'create' | 'change'): Command {
  const withFields = fieldOptions(made, policyFields, at)
  return inOrganization(withFields.option('--because <reason>', 'why --allow is right, for the next reviewer'))
}

function ruleInput({ options }: Arguments): Record<string, unknown> {
  const { organization } = options
  return { organization, ...fieldInput(policyFields, options), lint_exceptions: exceptionsIn(options) }
}

if (import.meta.main) await runAlone(policiesCommand())
