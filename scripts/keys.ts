// `latchkey keys`: the API keys that callers and access tokens act as.
import type { Command } from 'commander'
import { Fault } from '../src/fault.ts'
import {
  command,
  commandOnOne,
  group,
  inOrganization,
  type Options,
  operationCommand,
  runAlone,
} from './command-line.ts'
import { moment, record, table, withAffected } from './present.ts'

type Key = {
  id: string
  name: string
  label: string
  kind: string
  disabled: boolean
  workspace: string
  owner: string
  created_at: string
  key?: string
  policies_affected?: string[]
}

const show = ({ id, name, label, kind, disabled, workspace, owner, key }: Key) => {
  const fields = record({ id, name, label, kind, state: disabled ? 'disabled' : 'enabled', workspace, owner })
  return key === undefined ? fields : `${fields}\n\nThe key, shown only now:\n  ${key}`
}

export function keysCommand(): Command {
  const create = command('create', 'Make an API key; its text is shown once', [
    'keys create --name my-app',
    'keys create --name ci --owner platform-team --workspace staging',
    'keys create --name admin-laptop --management',
    'keys create --name dashboard --management read-only',
  ])
    .requiredOption('--name <name>', 'what to call it')
    .option('--management [access]', 'a management key, read-write or read-only, instead of an inference key')
    .option('--owner <name>', 'user who owns it; made when new (default: admin)')
    .option('--workspace <workspace>', 'workspace, by name or id (default: default)')
  return group('keys', 'API keys: what workloads use and access tokens act as', [
    operationCommand(
      inOrganization(create),
      'keys.create',
      ({ options }) => ({
        name: options.name,
        kind: kindOf(options),
        owner: options.owner,
        workspace: options.workspace,
        organization: options.organization,
      }),
      show,
    ),
    operationCommand(
      inOrganization(command('list', 'List the keys', ['keys list', 'keys list --json'])),
      'keys.list',
      ({ options }) => ({ organization: options.organization }),
      ({ data }: { data: Key[] }) =>
        table(
          data,
          [
            ['NAME', (row) => row.name],
            ['KIND', (row) => row.kind],
            ['STATE', (row) => (row.disabled ? 'disabled' : 'enabled')],
            ['LABEL', (row) => row.label],
            ['WORKSPACE', (row) => row.workspace],
            ['OWNER', (row) => row.owner],
            ['ID', (row) => row.id],
            ['CREATED (UTC)', (row) => moment(row.created_at)],
          ],
          'No keys; make one with: latchkey keys create --name my-app',
        ),
    ),
    commandOnOne('key', 'show', 'Show a key', 'keys.show', show),
    commandOnOne(
      'key',
      'disable',
      'Refuse the key, and every token that acts as it, at once',
      'keys.disable',
      (key: Key) => withAffected(show(key), key),
    ),
    commandOnOne('key', 'enable', 'Accept a disabled key again', 'keys.enable', show),
    commandOnOne('key', 'delete', 'Delete a key for good', 'keys.delete', (key: Key) =>
      withAffected(`Deleted ${key.id}`, key),
    ),
  ])
}

function kindOf({ management }: Options): string {
  if (management === undefined) return 'inference'
  if (management === true || management === 'read-write') return 'management'
  if (management === 'read-only') return 'management_read_only'
  throw new Fault('usage', `--management takes read-write or read-only, not ${JSON.stringify(management)}`)
}

if (import.meta.main) await runAlone(keysCommand())
