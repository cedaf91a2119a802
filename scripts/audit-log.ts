// `latchkey audit prove`, `checkpoint` and `key`: what the transparent audit log of a database gives to auditors.
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { trailCommand } from './audit-trail.ts'
import { verifyCommand } from './audit-verify.ts'
import { cosignCommand } from './audit-witness.ts'
import { command } from './shared/command-line.ts'
import { operationCommand } from './shared/operation-command.ts'
import { wholeNumber } from './shared/option-values.ts'
import { counted, few, moment, printable } from './shared/render.ts'

export function auditLogCommands(): Command[] {
  return [
    proveCommand(),
    verifyCommand(),
    checkpointCommand(),
    keyCommand(),
    cosignCommand(),
    trailCommand(),
    eraseCommand(),
  ]
}

function proveCommand(): Command {
  const made = command(
    'prove [request-id]',
    'Print a proof that the audit log has an exchange, a request or a change',
    [
      'audit prove 01a1feb6-0bde-7947-b3a3-0ae6b3f500f6 > exchange.tlog-proof',
      'audit prove 01a1feb6-2f4c-7d10-9c3e-5b8a2f6d7e90 > request.tlog-proof',
      'audit prove --change 17 > change.tlog-proof',
    ],
  )
    .option('--change <id>', 'a change, by the number that `audit changes` shows', wholeNumber)
    .option('--record <id>', 'a record of the log itself, such as the totals of a day', wholeNumber)
    .addHelpText(
      'after',
      `
The request id is the header x-request-id of a response: that of an exchange or of an inference request. A request has a proof once its day (UTC)
has ended and the log has the totals of the day, 15 minutes later.`,
    )
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
  const { mode, origin, entries, pruned, checkpoint_size, checkpoint_at, cosigned, folder, failure, keys } = log
  const signed = checkpoint_size === null ? 'none yet' : `${checkpoint_size} entries, ${moment(checkpoint_at)} UTC`
  return [
    `Log         ${origin ?? 'none yet: a server or `latchkey audit checkpoint` begins it'}`,
    `Covers      ${mode}`,
    `Entries     ${entries}${pruned === 0 ? '' : `, of which ${pruned} were pruned`}`,
    `Checkpoint  ${signed}`,
    `Cosigned    ${cosigned === null ? 'never' : `${cosigned.size} entries, ${moment(cosigned.at)} UTC, by ${cosigned.by.map(printable).join(', ')}`}`,
    `Folder      ${folder ?? 'none'}`,
    ...(failure === null ? [] : [`Failure     ${printable(failure)}`]),
    ...keys.map(
      ({ verifier_key, retired_at }) =>
        `Key         ${verifier_key}${retired_at === null ? '' : ` (until ${moment(retired_at)} UTC)`}`,
    ),
  ].join('\n')
}

function eraseCommand(): Command {
  const made = command('erase', 'Erase a subject from exchanges and usage; totals and all other proofs stay', [
    'audit erase --subject repo:acme/app --issuer github --because "request 4711 of the data protection officer"',
  ])
    .requiredOption('--subject <subject>', 'only rows of this subject, the `sub` of its tokens')
    .requiredOption('--issuer <issuer>', 'the issuer, by name or id; a deleted one by id')
    .requiredOption('--because <reason>', 'why; the audit log keeps it, so it must not name the subject')
    .option('--organization <organization>', 'organization, by name or id (default: the only one, or default)')
    .addHelpText(
      'after',
      `
It cannot be undone. Archives, backups and the logs of the server are not changed. Run it again if it was interrupted.`,
    )
  return operationCommand(
    made,
    'audit.erase',
    ({ options: { subject, issuer, because, organization } }) => ({ subject, issuer, because, organization }),
    drawErased,
    { moreShown: ['LATCHKEY_MASTER_KEY_FILE', 'LATCHKEY_MASTER_KEY', 'LATCHKEY_AUDIT_LOG', 'LATCHKEY_AUDIT_DIR'] },
  )
}

function drawErased({ exchanges, usage, alerts, archives }: OperationResponse<'audit.erase'>): string {
  const files = few(archives.map(printable), archivesShownMax)
  return [
    `Erased ${counted(exchanges, 'exchange')} and ${counted(usage, 'request')}`,
    ...(alerts === 0 ? [] : [`Erased the value of ${counted(alerts, 'alert')}`]),
    ...(archives.length === 0 ? [] : [`Archives were not changed, and can have rows of the subject: ${files}`]),
  ].join('\n')
}

const archivesShownMax = 10
