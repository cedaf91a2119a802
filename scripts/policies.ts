// `latchkey policies`: which tokens of an issuer are exchanged for access tokens of which key.
import { type Command, Option } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { backtestCommand } from './shared/backtest.ts'
import { type Arguments, command, group, isNarrowed, nothingMatches, runAlone } from './shared/command-line.ts'
import { checkCommand } from './shared/explanations.ts'
import { drawDifference, drawFindings, exceptionsIn, isBlocked, lintCommand } from './shared/findings.ts'
import { answerIssuerQuestion } from './shared/issuer-question.ts'
import { pagedList } from './shared/list-pages.ts'
import { commandOnOne, inOrganization, operationCommand } from './shared/operation-command.ts'
import { durationSeconds, removable, unusedOption } from './shared/option-values.ts'
import { testsCommand, testsIn } from './shared/policy-tests.ts'
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
    id: policy.id,
    name: policy.name,
    state: state(policy),
    issuer: issuer(policy),
    audience: policy.audience,
    subject: policy.subject,
    condition: policy.condition,
    'required scope': policy.required_scope,
    'required token_type': policy.required_token_type,
    'target key': key(policy),
    'replay protection': policy.replay_protection ? 'on' : 'off',
    ...(policy.allowed_models === null ? {} : { models: policy.allowed_models.join(' ') }),
    ...(policy.allowed_presets === null ? {} : { presets: policy.allowed_presets.join(' ') }),
    'max lifetime': `${policy.max_lifetime_seconds} s`,
    ...(policy.lint_exceptions === null
      ? {}
      : { 'lint exceptions': policy.lint_exceptions.map(({ rule, because }) => `${rule}: ${because}`).join('; ') }),
    ...(policy.tests === null ? {} : { tests: policy.tests.map((each) => `${each.name} (${each.expect})`).join('; ') }),
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
  ])
    .requiredOption('--name <name>', 'name of the policy')
    .requiredOption('--issuer <issuer>', 'issuer of the tokens, by name or id')
    .requiredOption('--audience <audience>', 'value that the aud claim must equal or contain')
    .requiredOption('--key <key>', 'target key, which access tokens act as, by name, id or hash')
    .option('--dry-run', 'check the policy without saving it')
  return operationCommand(
    ruleOptions(made),
    'policies.create',
    (given) => ({ ...ruleInput(given), dry_run: given.options.dryRun }),
    (policy) =>
      'dry_run' in policy
        ? ['The policy is valid. Run this without --dry-run to save it.', ...drawFindings(policy.findings)].join('\n')
        : [
            show(policy),
            ...drawFindings(policy.findings),
            '',
            `Workloads send federation_policy_id=${policy.id} with every exchange.`,
          ].join('\n'),
    { remedy: answerIssuerQuestion },
  )
}

function listCommand(): Command {
  const made = command('list', 'List the policies', [
    'policies list',
    'policies list --key ci',
    'policies list --unused 90d',
    'policies list --contains deploy --limit 20',
  ])
    .option('--key <key>', 'only policies with this target key, by name, id or hash; give a deleted key by id')
    .option('--issuer <issuer>', 'only policies of this issuer, by name or id; give a deleted issuer by id')
    .addOption(new Option('--state <state>', 'only policies in this state').choices(['enabled', 'paused', 'inactive']))
    .option(...unusedOption('policies'))
  return pagedList(
    made,
    'policies.list',
    ({ options: { key, issuer, state, unused } }) => ({ key, issuer, state, unused_since: unused }),
    (rows, { options }) =>
      table(
        rows,
        columns,
        isNarrowed(options, ['key', 'issuer', 'state', 'unused', 'contains'])
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
    .option('--name <name>', 'new name')
    .option('--issuer <issuer>', 'issuer of the tokens, by name or id')
    .option('--audience <audience>', 'value that the aud claim must equal or contain')
    .option('--key <key>', 'target key, by name, id or hash')
  return operationCommand(
    ruleOptions(made)
      .option('--no-subject', 'remove the subject; the condition then decides alone')
      .option('--no-condition', 'remove the condition; the subject then decides alone')
      .option('--no-require-scope', 'remove the scope check')
      .option('--no-require-token-type', 'remove the token type check')
      .option('--no-replay-protection', 'accept a token more than once')
      .option('--no-allowed-models', 'remove the model restriction')
      .option('--no-allowed-presets', 'remove the preset restriction')
      .option('--no-allow', 'remove the lint exceptions')
      .option('--no-tests', 'remove the tests')
      .option('--dry-run', 'show which tokens would pass or no longer pass, without saving the change'),
    'policies.update',
    (given) => ({ policy: given.words[0], ...ruleInput(given), dry_run: given.options.dryRun }),
    (policy) => [show(policy), ...drawDifference(policy.difference), ...drawFindings(policy.findings)].join('\n'),
    {
      isNegative: ({ dry_run, findings }) => dry_run === true && findings.some(isBlocked),
      remedy: answerIssuerQuestion,
    },
  )
}

function ruleOptions(made: Command): Command {
  return inOrganization(
    made
      .option(
        '--subject <subject>',
        'value that the sub claim must equal; on GitHub repo:OWNER@OWNER_ID/REPO@REPO_ID:… or the older repo:OWNER/REPO:…',
      )
      .option('--condition <cel>', 'CEL condition on the token, e.g. "claims.environment == \'production\'"')
      .option('--require-scope <scope>', 'value that the scopes claim must contain')
      .option('--require-token-type <type>', 'value that the token_type claim must equal')
      .option(
        '--max-lifetime <duration>',
        'maximum lifetime of an access token, 1m to 15m (default: 15m)',
        durationSeconds,
      )
      .option('--replay-protection', 'accept each token once; tokens must have a jti claim')
      .option('--allowed-models <pattern...>', 'models that access tokens may use; * matches any characters')
      .option(
        '--allowed-presets <pattern...>',
        'presets that access tokens may use; every request must name one of them',
      )
      .option('--allow <rule...>', 'save the policy despite findings of these lint rules; replaces earlier exceptions')
      .option('--because <reason>', 'why --allow is right, for the next reviewer')
      .option(
        '--tests <file>',
        'JSON file with tests, which are stored with the policy and run now; - for standard input',
      ),
  )
}

/** An option given as `--no-…` is false and removes the check. */
function ruleInput({ options }: Arguments): Record<string, unknown> {
  return {
    organization: options.organization,
    name: options.name,
    issuer: options.issuer,
    key: options.key,
    audience: options.audience,
    subject: removable(options.subject),
    condition: removable(options.condition),
    required_scope: removable(options.requireScope),
    required_token_type: removable(options.requireTokenType),
    max_lifetime_seconds: options.maxLifetime,
    replay_protection: options.replayProtection,
    allowed_models: removable(options.allowedModels),
    allowed_presets: removable(options.allowedPresets),
    lint_exceptions: exceptionsIn(options),
    tests: testsIn(options),
  }
}

if (import.meta.main) await runAlone(policiesCommand())
