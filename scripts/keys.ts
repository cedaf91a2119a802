// `latchkey keys`: the API keys that callers and access tokens act as.
import { type Command, Option } from 'commander'
import { keyFields } from '../src/admin/kinds/key.ts'
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
import { fieldInput, fieldLines, fieldOptions } from './shared/field-options.ts'
import { pagedList, pageFilters } from './shared/list-pages.ts'
import { commandOnOne, inOrganization, operationCommand } from './shared/operation-command.ts'
import { durationSeconds } from './shared/option-values.ts'
import { dollars, lastUse, managedBy, moment, printable, record, withAffected } from './shared/render.ts'
import { type Column, table } from './shared/table.ts'
import { stateTone } from './shared/terminal.ts'

type Key = OperationResponse<'keys.list'>['data'][number]

const show = (
  row: Key & { key?: string; current_last_used_at?: string | null; previous_last_used_at?: string | null },
) => {
  const { limit, limit_reset, limit_remaining, key } = row
  const fields = record({
    ...fieldLines(keyFields, row, {
      owner_id: row.owner,
      usage: row.usage === 0 ? null : `${dollars(row.usage)} USD`,
      limit: limit && `${dollars(limit)} USD ${limit_reset ?? 'in all'}, ${dollars(limit_remaining ?? 0)} left`,
    }),
    ...managedBy(row),
    ...lastUse(row),
    ...(row.previous_last_used_at === undefined
      ? {}
      : {
          'new text last used (UTC)': moment(row.current_last_used_at ?? null),
          'text before last used (UTC)': moment(row.previous_last_used_at),
        }),
  })
  return key === undefined ? fields : `${fields}\n\nThe key (shown only once):\n  ${key}`
}

export function keysCommand(): Command {
  return group('keys', 'API keys, which workloads use and access tokens act as', [
    createCommand(),
    listCommand(),
    updateCommand(),
    commandOnOne('key', 'show', 'Show a key', 'keys.show', show),
    rotateCommand(),
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
    'keys create --name dashboard --management --role viewer',
    "keys create --name team --budget 25 --budget-reset monthly --allowed-models 'meta/*'",
  ]).option(
    '--management [access]',
    'create a management key instead of an inference key: read-write (role admin) or read-only (role viewer)',
  )
  return operationCommand(
    inOrganization(fieldOptions(made, keyFields, 'create')),
    'keys.create',
    ({ options }) => ({
      ...fieldInput(keyFields, options),
      kind: kindOf(options),
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
  return pagedList(
    made,
    'keys.list',
    ({ options: { owner, state } }) => ({ owner, state }),
    (rows, { options }) =>
      table(
        rows,
        columns,
        isNarrowed(options, ['owner', 'state', ...pageFilters])
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
  return operationCommand(
    inOrganization(fieldOptions(made, keyFields, 'change')),
    'keys.update',
    ({ words, options }) => ({
      ...fieldInput(keyFields, options),
      key: words[0],
      organization: options.organization,
    }),
    show,
  )
}

function rotateCommand(): Command {
  const made = command('rotate <key>', 'Give a key a new text, shown once; the one before works for a while', [
    'keys rotate my-app',
    'keys rotate my-app --grace 7d',
    'keys rotate leaked --grace 0s',
  ]).option(
    '--grace <duration>',
    'how long the text before still works, up to 30d (default: 24h); keys show says when it was last used',
    durationSeconds,
  )
  return operationCommand(
    inOrganization(made),
    'keys.rotate',
    ({ words, options: { organization, grace } }) => ({ key: words[0], organization, grace_seconds: grace }),
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

/** Undefined where the role says it. */
function kindOf({ management, role }: Options): string | undefined {
  if (management === undefined && role !== undefined)
    throw new Fault('usage', '--role is for management keys: add --management, or remove --role')
  if (management === undefined) return 'inference'
  if (management === true && role !== undefined) return undefined
  if (management === true || management === 'read-write') return 'management'
  if (management === 'read-only') return 'management_read_only'
  throw new Fault(
    'usage',
    `${JSON.stringify(management)} is not a valid value for --management: use read-write or read-only`,
  )
}

if (import.meta.main) await runAlone(keysCommand())
