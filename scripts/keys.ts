// `latchkey keys`: the API keys that callers and access tokens act as.
import { type Command, Option } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { Fault } from '../src/fault.ts'
import { keyStates } from '../src/keys/api-key.ts'
import {
  type Arguments,
  command,
  group,
  isNarrowed,
  nothingMatches,
  type Options,
  runAlone,
} from './shared/command-line.ts'
import { pagedList } from './shared/list-pages.ts'
import { commandOnOne, inOrganization, operationCommand } from './shared/operation-command.ts'
import { futureText, money, removable, unusedOption, wholeNumber } from './shared/option-values.ts'
import { dollars, lastUse, managedBy, moment, printable, record, withAffected } from './shared/render.ts'
import { type Column, table } from './shared/table.ts'
import { stateTone } from './shared/terminal.ts'

type Key = OperationResponse<'keys.list'>['data'][number]

const show = (row: Key & { key?: string }) => {
  const { id, name, label, kind, workspace, owner, key } = row
  const fields = record({
    id,
    name,
    label,
    kind,
    state: row.state,
    workspace,
    owner,
    ...boundsShown(row),
    ...managedBy(row),
    ...lastUse(row),
  })
  return key === undefined ? fields : `${fields}\n\nThe key (shown only once):\n  ${key}`
}

/** Only the bounds that are set. */
function boundsShown(row: Key): Record<string, unknown> {
  const { limit, limit_reset, limit_remaining } = row
  return {
    ...(row.usage === 0 ? {} : { used: `${dollars(row.usage)} USD` }),
    ...(limit === null
      ? {}
      : { limit: `${dollars(limit)} USD ${limit_reset ?? 'in all'}, ${dollars(limit_remaining ?? 0)} left` }),
    ...(row.requests_per_minute === null ? {} : { 'requests per minute': row.requests_per_minute }),
    ...(row.tokens_per_minute === null ? {} : { 'tokens per minute': row.tokens_per_minute }),
    ...(row.allowed_models === null ? {} : { models: row.allowed_models.join(' ') }),
    ...(row.allowed_presets === null ? {} : { presets: row.allowed_presets.join(' ') }),
    ...(row.expires_at === null ? {} : { 'expires (UTC)': moment(row.expires_at) }),
  }
}

export function keysCommand(): Command {
  return group('keys', 'API keys, which workloads use and access tokens act as', [
    createCommand(),
    listCommand(),
    updateCommand(),
    commandOnOne('key', 'show', 'Show a key', 'keys.show', show),
    onSome('disable', 'Reject keys and all access tokens that act as them, immediately', 'keys.disable', (response) =>
      drawChanged('Disabled', response),
    ),
    onSome('enable', 'Accept disabled keys again', 'keys.enable', (response) => drawChanged('Enabled', response)),
    onSome('delete', 'Delete keys permanently', 'keys.delete', drawDeleted),
  ])
}

function createCommand(): Command {
  const made = command('create', 'Create an API key; its text is shown once', [
    'keys create --name my-app',
    'keys create --name ci --owner platform-team --workspace staging',
    'keys create --name admin-laptop --management',
    'keys create --name dashboard --management read-only',
    "keys create --name team --budget 25 --budget-reset monthly --allowed-models 'meta/*'",
  ])
    .requiredOption('--name <name>', 'name of the key')
    .option('--management [access]', 'create a management key, read-write or read-only, instead of an inference key')
    .option('--owner <user>', 'user who owns the key; created if it does not exist (default: admin)')
    .option('--workspace <workspace>', 'workspace, by name or id (default: default)')
  return operationCommand(
    inOrganization(boundOptions(made)),
    'keys.create',
    ({ options }) => ({
      ...boundsOf(options),
      name: options.name,
      kind: kindOf(options),
      owner: options.owner,
      workspace: options.workspace,
      organization: options.organization,
    }),
    show,
  )
}

function listCommand(): Command {
  const made = command('list', 'List the keys', [
    'keys list',
    'keys list --owner platform-team --state disabled',
    'keys list --contains batch --limit 20',
  ])
    .option('--owner <user>', 'only keys of this user, by name or id')
    .addOption(new Option('--state <state>', 'only keys in this state').choices([...keyStates]))
    .option(...unusedOption('keys'))
  return pagedList(
    made,
    'keys.list',
    ({ options: { owner, state, unused } }) => ({ owner, state, unused_since: unused }),
    (rows, { options }) =>
      table(
        rows,
        columns,
        isNarrowed(options, ['owner', 'state', 'unused', 'contains'])
          ? nothingMatches
          : 'No keys. To create one: latchkey keys create --name my-app',
      ),
  )
}

const columns: Column<Key>[] = [
  ['NAME', (row) => row.name],
  ['KIND', (row) => row.kind],
  ['STATE', (row) => row.state, stateTone],
  ['LABEL', (row) => row.label],
  [
    'LEFT (USD)',
    (row) => (row.limit === null ? null : `${dollars(row.limit_remaining ?? 0)} of ${dollars(row.limit)}`),
  ],
  ['WORKSPACE', (row) => row.workspace],
  ['OWNER', (row) => row.owner],
  ['MANAGED BY', (row) => row.managed_by],
  ['ID', (row) => row.id],
  ['CREATED (UTC)', (row) => moment(row.created_at)],
  ['LAST USED (UTC)', ({ last_used_at = null }) => moment(last_used_at)],
]

function updateCommand(): Command {
  const made = command('update <key>', 'Change a key; takes effect at the next request', [
    'keys update team --budget 50',
    'keys update team --no-budget --expires-at 2027-01-01',
  ])
    .option('--name <name>', 'new name')
    .option('--no-budget', 'remove the budget')
    .option('--no-budget-reset', 'make it a budget for the whole life of the key')
    .option('--no-requests-per-minute', 'remove the limit on requests')
    .option('--no-tokens-per-minute', 'remove the limit on tokens')
    .option('--no-allowed-models', 'remove the model restriction')
    .option('--no-allowed-presets', 'remove the preset restriction')
    .option('--no-expires-at', 'never expire')
  return operationCommand(
    inOrganization(boundOptions(made)),
    'keys.update',
    ({ words, options }) => ({
      ...boundsOf(options),
      key: words[0],
      name: options.name,
      organization: options.organization,
    }),
    show,
  )
}

/** A command on the keys that its arguments name. It changes all of them or none. */
function onSome<Name extends 'keys.disable' | 'keys.enable' | 'keys.delete'>(
  verb: string,
  description: string,
  name: Name,
  draw: (response: OperationResponse<Name>) => string,
): Command {
  const made = command(`${verb} <key...>`, description, [`keys ${verb} my-key`, `keys ${verb} my-key another-key`])
  const toInput = ({ words, options: { organization } }: Arguments) =>
    words.length === 1 ? { key: words[0], organization } : { keys: words, organization }
  return operationCommand(inOrganization(made), name, toInput, draw)
}

/** A single key is printed as `show` prints it. */
function drawChanged(done: string, response: OperationResponse<'keys.disable'>): string {
  return 'data' in response ? drawSome(done, response.data) : withAffected(show(response), response)
}

function drawDeleted(response: OperationResponse<'keys.delete'>): string {
  return 'data' in response ? drawSome('Deleted', response.data) : withAffected(`Deleted ${response.id}`, response)
}

function drawSome(done: string, keys: { name: string; policies_affected?: string[] }[]): string {
  const policies_affected = keys.flatMap((key) => key.policies_affected ?? [])
  return withAffected(keys.map(({ name }) => `${done} ${printable(name)}`).join('\n'), { policies_affected })
}

function boundOptions(made: Command): Command {
  return made
    .option(
      '--budget <dollars>',
      'what the key may spend, in US dollars; requests without a known cost do not count (see: latchkey prices)',
      money,
    )
    .addOption(
      new Option('--budget-reset <period>', 'how often the budget starts again, UTC').choices([
        'daily',
        'weekly',
        'monthly',
      ]),
    )
    .option('--requests-per-minute <number>', 'maximum number of requests per minute', wholeNumber)
    .option('--tokens-per-minute <number>', 'maximum number of tokens per minute', wholeNumber)
    .option('--allowed-models <pattern...>', 'models that the key may use; * matches any characters')
    .option('--allowed-presets <pattern...>', 'presets that the key may use; every request must name one of them')
    .option(
      '--expires-at <time>',
      'when the key expires: a time such as 2027-01-01T00:00:00Z, or 30d for 30 days from now',
      futureText,
    )
}

function boundsOf(options: Options): Record<string, unknown> {
  return {
    limit: removable(options.budget),
    limit_reset: removable(options.budgetReset),
    requests_per_minute: removable(options.requestsPerMinute),
    tokens_per_minute: removable(options.tokensPerMinute),
    allowed_models: removable(options.allowedModels),
    allowed_presets: removable(options.allowedPresets),
    expires_at: removable(options.expiresAt),
  }
}

function kindOf({ management }: Options): string {
  if (management === undefined) return 'inference'
  if (management === true || management === 'read-write') return 'management'
  if (management === 'read-only') return 'management_read_only'
  throw new Fault(
    'usage',
    `${JSON.stringify(management)} is not a valid value for --management: use read-write or read-only`,
  )
}

if (import.meta.main) await runAlone(keysCommand())
