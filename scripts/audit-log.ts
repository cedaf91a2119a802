// `latchkey audit prove`, `checkpoint` and `key`: what the transparent audit log of a database gives to auditors.
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { verifyCommand } from './audit-verify.ts'
import { cosignCommand } from './audit-witness.ts'
import { command } from './shared/command-line.ts'
import { operationCommand } from './shared/operation-command.ts'
import { wholeNumber } from './shared/option-values.ts'
import { moment, printable } from './shared/render.ts'

export function auditLogCommands(): Command[] {
  return [proveCommand(), verifyCommand(), checkpointCommand(), keyCommand(), cosignCommand()]
}

function proveCommand(): Command {
  const made = command('prove [request-id]', 'Print a proof that the audit log has an exchange or a change', [
    'audit prove 01a1feb6-0bde-7947-b3a3-0ae6b3f500f6 > exchange.tlog-proof',
    'audit prove --change 17 > change.tlog-proof',
  ])
    .option('--change <id>', 'a change, by the id that `audit changes --json` shows', wholeNumber)
    .option('--record <id>', 'a record of the log itself, such as the totals of a day', wholeNumber)
  return operationCommand(
    made,
    'audit.prove',
    ({ words, options }) => ({ request_id: words[0], change_id: options.change, record_id: options.record }),
    ({ proof }) => proof.trimEnd(),
  )
}

function checkpointCommand(): Command {
  const made = command('checkpoint', 'Sign a checkpoint of the audit log now, and print it', [
    'audit checkpoint > office.checkpoint',
  ])
  return operationCommand(
    made,
    'audit.checkpoint',
    () => ({}),
    ({ note }) => note.trimEnd(),
  )
}

function keyCommand(): Command {
  const made = command('key', 'Show the audit log, its newest checkpoint and the keys that verify it', [
    'audit key',
    'audit key --rotate',
  ]).option('--rotate', 'sign with a new key from now on; one checkpoint has the signatures of both')
  return operationCommand<'audit.log' | 'audit.rotate_key'>(
    made,
    ({ options }): 'audit.log' | 'audit.rotate_key' => (options.rotate === true ? 'audit.rotate_key' : 'audit.log'),
    () => ({}),
    drawLog,
    { moreShown: ['LATCHKEY_MASTER_KEY_FILE', 'LATCHKEY_MASTER_KEY', 'LATCHKEY_AUDIT_LOG', 'LATCHKEY_AUDIT_DIR'] },
  )
}

function drawLog(log: OperationResponse<'audit.log'>): string {
  const { mode, origin, entries, checkpoint_size, checkpoint_at, folder, failure, keys } = log
  const signed = checkpoint_size === null ? 'none yet' : `${checkpoint_size} entries, ${moment(checkpoint_at)} UTC`
  return [
    `Log         ${origin ?? 'none yet: a server or `latchkey audit checkpoint` begins it'}`,
    `Covers      ${mode}`,
    `Entries     ${entries}`,
    `Checkpoint  ${signed}`,
    `Folder      ${folder ?? 'none'}`,
    ...(failure === null ? [] : [`Failure     ${printable(failure)}`]),
    ...keys.map(
      ({ verifier_key, retired_at }) =>
        `Key         ${verifier_key}${retired_at === null ? '' : ` (until ${moment(retired_at)} UTC)`}`,
    ),
  ].join('\n')
}
