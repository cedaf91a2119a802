// `latchkey policies`: which tokens of which issuer may act as which key.
import { type Command, Option } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { drawExplanations } from './explanations.ts'
import { type Arguments, command, group, isNarrowed, nothingMatches, runAlone } from './shared/command-line.ts'
import { readTextFile } from './shared/input-files.ts'
import { commandOnOne, inOrganization, operationCommand } from './shared/operation-command.ts'
import { removable, wholeNumber } from './shared/option-values.ts'
import { record } from './shared/render.ts'
import { table } from './shared/table.ts'
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
  })

export function policiesCommand(): Command {
  const create = command('create', 'Let tokens of an issuer act as a key', [
    'policies create --name ci --issuer github --audience https://llm.example.com --subject repo:acme/app:ref:refs/heads/main --key ci',
    'policies create --name batch --issuer idp --audience llm --subject svc-batch --require-scope inference --key batch --max-lifetime 300',
  ])
    .requiredOption('--name <name>', 'what to call it')
    .requiredOption('--issuer <issuer>', 'trusted issuer, by name or id')
    .requiredOption('--audience <audience>', 'value that the aud claim must hold')
    .requiredOption('--key <key>', 'inference key that the access token acts as, by name, id or hash')
    .option('--dry-run', 'check everything and save nothing')
  const update = command('update <policy>', 'Change a policy; takes effect at once', [
    'policies update ci --subject repo:acme/app:environment:production',
    'policies update ci --condition "claims.repository_owner_id == \'162148032\'" --no-subject',
    'policies update batch --no-require-scope',
  ])
    .option('--name <name>', 'new name')
    .option('--issuer <issuer>', 'trusted issuer, by name or id')
    .option('--audience <audience>', 'value that the aud claim must hold')
    .option('--key <key>', 'inference key that the access token acts as')
  const check = command('check', 'Walk a token through every step of an exchange, without exchanging it', [
    'policies check --token-file jwt.txt --policy ci',
    'policies check --token-file - < jwt.txt',
  ])
    .requiredOption('--token-file <file>', 'file that holds the token; - for standard input')
    .option(
      '--policy <policy>',
      'policy, by name or id, with all its steps; without it a line for each of the nearest of the issuer',
    )
  const list = command('list', 'List the policies', ['policies list', 'policies list --key ci', 'policies list --json'])
    .option('--key <key>', 'only those that act as this key, by name, id or hash; a deleted one by id')
    .option('--issuer <issuer>', 'only those of this issuer, by name or id; a deleted one by id')
    .addOption(new Option('--state <state>', 'only those in this state').choices(['enabled', 'paused', 'inactive']))
  return group('policies', 'Federation policies: which tokens of which issuer may act as which key', [
    operationCommand(
      ruleOptions(create),
      'policies.create',
      (given) => ({ ...ruleInput(given), dry_run: given.options.dryRun }),
      (policy) =>
        'dry_run' in policy
          ? 'It would be saved; without --dry-run it is'
          : [show(policy), '', `Workloads send federation_policy_id=${policy.id} with every exchange.`].join('\n'),
    ),
    operationCommand(
      inOrganization(list),
      'policies.list',
      ({ options: { organization, key, issuer, state } }) => ({ organization, key, issuer, state }),
      ({ data }, { options }) =>
        table(
          data,
          [
            ['NAME', (row) => row.name],
            ['STATE', state, stateTone],
            ['ISSUER', issuer],
            ['AUDIENCE', (row) => row.audience],
            ['SUBJECT', (row) => row.subject],
            ['CONDITION', (row) => row.condition],
            ['KEY', key],
            ['ID', (row) => row.id],
          ],
          isNarrowed(options, ['key', 'issuer', 'state'])
            ? nothingMatches
            : 'No policies; make one with: latchkey policies create --help',
        ),
    ),
    operationCommand(
      inOrganization(check),
      'policies.check',
      ({ options }) => ({
        organization: options.organization,
        policy: options.policy,
        token: readTextFile(String(options.tokenFile)).trim(),
      }),
      ({ data }) => drawExplanations(data),
      {
        moreShown: ['LATCHKEY_INSECURE_ISSUERS'],
        isNegative: ({ data }) => !data.some(({ accepted }) => accepted),
      },
    ),
    commandOnOne('policy', 'show', 'Show a policy', 'policies.show', show),
    operationCommand(
      ruleOptions(update)
        .option('--no-subject', 'let the condition alone say which subjects')
        .option('--no-condition', 'let the subject alone say who may')
        .option('--no-require-scope', 'remove the scope check')
        .option('--no-require-token-type', 'remove the token type check')
        .option('--no-replay-protection', 'accept a token more than once')
        .option('--no-allowed-models', 'all models')
        .option('--no-allowed-presets', 'all presets, or none'),
      'policies.update',
      (given) => ({ policy: given.words[0], ...ruleInput(given) }),
      show,
    ),
    commandOnOne(
      'policy',
      'pause',
      'Stop new exchanges at once; tokens already issued live on until they expire',
      'policies.pause',
      show,
    ),
    commandOnOne('policy', 'resume', 'Let a paused policy exchange again', 'policies.resume', show),
    commandOnOne(
      'policy',
      'delete',
      'Delete a policy; new exchanges stop at once',
      'policies.delete',
      ({ id }) => `Deleted ${id}`,
    ),
  ])
}

function ruleOptions(made: Command): Command {
  return inOrganization(
    made
      .option(
        '--subject <subject>',
        'value that the sub claim must equal; for GitHub, repo:OWNER@OWNER_ID/REPO@REPO_ID:… or the older repo:OWNER/REPO:…',
      )
      .option('--condition <cel>', 'CEL condition on the token, e.g. "claims.environment == \'production\'"')
      .option('--require-scope <scope>', 'the scopes claim must contain this value')
      .option('--require-token-type <type>', 'the token_type claim must equal this value')
      .option('--max-lifetime <seconds>', 'longest life of an access token, 60 to 900 (default: 900)', wholeNumber)
      .option('--replay-protection', 'accept each token once; it must have a jti')
      .option('--allowed-models <pattern...>', 'the models that its access tokens may use; * stands for any characters')
      .option('--allowed-presets <pattern...>', 'the presets that they may use, one of which every request must name'),
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
  }
}

if (import.meta.main) await runAlone(policiesCommand())
