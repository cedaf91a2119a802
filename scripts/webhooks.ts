// `latchkey webhooks`: where alerts are sent.
import type { Command } from 'commander'
import { webhookFields } from '../src/admin/kinds/webhook.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { type Arguments, command, group, runAlone } from './shared/command-line.ts'
import { fieldInput, fieldLines, fieldOptions } from './shared/field-options.ts'
import { readTextFile } from './shared/input-files.ts'
import { commandOnOne, inOrganization, operationCommand } from './shared/operation-command.ts'
import { durationSeconds } from './shared/option-values.ts'
import { managedBy, moment, record } from './shared/render.ts'
import { table } from './shared/table.ts'

type Webhook = OperationResponse<'webhooks.show'>

export function webhooksCommand(): Command {
  return group('webhooks', 'Webhooks: where alerts are sent, signed as Standard Webhooks says', [
    addCommand(),
    listCommand(),
    commandOnOne('webhook', 'show', 'Show a webhook and how its deliveries fare', 'webhooks.show', show),
    updateCommand(),
    testCommand(),
    switchCommand('disable', 'Send nothing to a webhook, and keep nothing for it', false),
    switchCommand('enable', 'Send alerts to a disabled webhook again', true),
    commandOnOne('webhook', 'delete', 'Delete a webhook', 'webhooks.delete', ({ id }) => `Deleted ${id}`),
  ])
}

function addCommand(): Command {
  const made = command('add', 'Send alerts to a URL', [
    'webhooks add --name ops --webhook-url https://hooks.example.com/latchkey',
    'webhooks add --name finance --webhook-url https://hooks.example.com/money --events budget.reached --secret-file secret.txt',
  ])
  return operationCommand(withOptions(made, 'create'), 'webhooks.add', fieldsOf, (row) =>
    [
      show(row),
      '',
      ...(row.secret === undefined
        ? []
        : [`Secret: ${row.secret}`, 'The receiver verifies with it. It is not shown again.', '']),
      `Next: latchkey webhooks test ${JSON.stringify(row.name)}`,
    ].join('\n'),
  )
}

function updateCommand(): Command {
  const made = command('update <webhook>', 'Change a webhook; what waits for it is sent by its new settings', [
    'webhooks update ops --webhook-url https://hooks.example.com/new',
    'webhooks update ops --secret-file secret.txt',
    'webhooks update ops --secret-file secret.txt --grace 0s',
  ])
  const options = withOptions(made, 'change').option(
    '--grace <duration>',
    'with --secret-file: how long the secret before signs too, up to 30d (default: 24h)',
    durationSeconds,
  )
  return operationCommand(
    options,
    'webhooks.update',
    (given) => ({ webhook: given.words[0], ...fieldsOf(given), grace_seconds: given.options.grace }),
    show,
  )
}

function switchCommand(verb: string, description: string, enabled: boolean): Command {
  const made = command(`${verb} <webhook>`, description, [`webhooks ${verb} ops`])
  return operationCommand(
    inOrganization(made),
    'webhooks.update',
    ({ words, options }) => ({ webhook: words[0], enabled, organization: options.organization }),
    show,
  )
}

function testCommand(): Command {
  const made = command('test <webhook>', 'Send a test event, and report whether it arrived', ['webhooks test ops'])
  return operationCommand(
    inOrganization(made),
    'webhooks.test',
    ({ words, options }) => ({ webhook: words[0], organization: options.organization }),
    ({ ok, id, status, problem, milliseconds }) =>
      ok
        ? `✓ The receiver responded with ${status} after ${milliseconds} ms; webhook-id ${id}`
        : `✗ The test event did not arrive: ${problem}`,
    { isNegative: ({ ok }) => !ok },
  )
}

function listCommand(): Command {
  return operationCommand(
    inOrganization(command('list', 'List the webhooks with how their deliveries fare', ['webhooks list'])),
    'webhooks.list',
    ({ options: { organization } }) => ({ organization }),
    ({ data }) =>
      table(
        data,
        [
          ['NAME', (row) => row.name],
          ['URL', (row) => row.url],
          ['EVENTS', (row) => row.events.join(' ')],
          ['STATE', stateOf],
          ['WAITING', (row) => row.waiting],
          ['DELIVERED (UTC)', (row) => moment(row.delivered_at)],
          ['PROBLEM', (row) => row.problem],
          ['MANAGED BY', (row) => row.managed_by],
        ],
        'No webhooks. To add one: latchkey webhooks add --name ops --webhook-url https://hooks.example.com/latchkey',
      ),
  )
}

function stateOf({ enabled, failing_since: since }: Webhook): string {
  if (!enabled) return 'disabled'
  return since === null ? 'ok' : 'failing'
}

function show(row: Webhook): string {
  return record({
    ...fieldLines(webhookFields, row, { ca_pem: row.ca_pem === null ? 'none' : 'set' }),
    secret: row.has_secret ? 'set' : 'missing',
    state: stateOf(row),
    ...(row.failing_since === null ? {} : { 'failing since': moment(row.failing_since) }),
    ...(row.delivered_at === null ? {} : { delivered: moment(row.delivered_at) }),
    ...managedBy(row),
  })
}

function withOptions(made: Command, at: 'create' | 'change'): Command {
  return inOrganization(
    fieldOptions(made, webhookFields, at).option(
      '--secret-file <file>',
      'file with the secret that signs: 24 to 64 bytes in base64 (default when adding: a new one, shown once)',
    ),
  )
}

function fieldsOf({ options }: Arguments): Record<string, unknown> {
  const { secretFile, organization } = options
  const secret = typeof secretFile === 'string' ? { secret: readTextFile(secretFile).trim() } : {}
  return { ...fieldInput(webhookFields, options), ...secret, organization }
}

if (import.meta.main) await runAlone(webhooksCommand())
