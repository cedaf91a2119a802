// `latchkey signing-keys`: the keys that sign access tokens.
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { command, group, runAlone } from './shared/command-line.ts'
import { operationCommand } from './shared/operation-command.ts'
import { moment } from './shared/render.ts'
import { table } from './shared/table.ts'
import { stateTone } from './shared/terminal.ts'

type SigningKey = OperationResponse<'signing_keys.rotate'>

export function signingKeysCommand(): Command {
  const rotate = command(
    'rotate',
    'Create a signing key; it is published now and signs in five minutes, and issued tokens stay valid',
    ['signing-keys rotate', 'signing-keys rotate --revoke'],
  )
    .option('--at-once', 'sign with it immediately; verifiers with a cached key set may reject tokens for five minutes')
    .option('--revoke', 'for a stolen key: remove the old keys now, which invalidates every token they signed')
  return group('signing-keys', 'The keys that sign access tokens', [
    operationCommand(
      command('list', 'List the signing keys, oldest first', ['signing-keys list', 'signing-keys list --json']),
      'signing_keys.list',
      () => ({}),
      ({ data }) => draw(data),
    ),
    operationCommand(
      rotate,
      'signing_keys.rotate',
      ({ options }) => ({ at_once: options.atOnce, revoke: options.revoke }),
      (key) => draw([key]),
      { moreShown: ['LATCHKEY_MASTER_KEY_FILE', 'LATCHKEY_MASTER_KEY'] },
    ),
  ])
}

function draw(keys: SigningKey[]): string {
  return table(
    keys,
    [
      ['STATE', (row) => row.state, stateTone],
      ['SIGNS FROM (UTC)', (row) => moment(row.active_at)],
      ['PUBLISHED UNTIL (UTC)', (row) => moment(row.retired_at)],
      ['ID', (row) => row.id],
    ],
    'No signing keys',
  )
}

if (import.meta.main) await runAlone(signingKeysCommand())
