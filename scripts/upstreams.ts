// `latchkey upstreams`: the inference servers behind this service.
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { upstreamFields } from '../src/admin/kinds/upstream.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { Fault } from '../src/fault.ts'
import { type Arguments, command, group, type Options, runAlone } from './shared/command-line.ts'
import { fieldInput, fieldLines, fieldOptions } from './shared/field-options.ts'
import { readTextFile } from './shared/input-files.ts'
import { commandOnOne, operationCommand } from './shared/operation-command.ts'
import { removable } from './shared/option-values.ts'
import { managedBy, record } from './shared/render.ts'
import { table } from './shared/table.ts'
import { stateTone } from './shared/terminal.ts'
import { probeText, restsText, runningText, topCommand } from './upstreams-top.ts'

type Upstream = OperationResponse<'upstreams.show'>

const show = (row: Upstream) =>
  record({
    ...fieldLines(upstreamFields, row, {
      has_credential: describeCredential(row),
      ca_pem: row.ca_pem === null ? 'none' : 'set',
      forward_headers: row.forward_headers.join(' ') || 'none',
      return_headers: row.return_headers.join(' ') || 'none',
      rests: restsText(row.rests) || null,
      probe_path: row.probe_path === null ? null : `${row.probe_path} every ${row.probe_seconds} s`,
      probe: probeText(row.probe),
    }),
    ...managedBy(row),
  })

/** The server of the settings serves every model, so that one behind it may get no request. */
function orderNote({ priority }: Upstream): string[] {
  if (priority === 0) return []
  const note = `Requests go first to upstreams that serve their model and have a lower priority number than ${priority}`
  return [`${note}: LATCHKEY_UPSTREAM_URL has 0 and serves every model`]
}

function describeCredential({ has_credential, credential_exchange: exchange, base_url }: Upstream): string {
  if (exchange === null) return has_credential ? 'set' : 'none'
  return `exchanged at ${exchange.url ?? `${base_url}/oauth/token`} for the token in ${exchange.token_file}`
}

export function upstreamsCommand(): Command {
  const about = 'Inference servers to which requests are forwarded, in addition to LATCHKEY_UPSTREAM_URL'
  return group('upstreams', about, [
    addCommand(),
    listCommand(),
    commandOnOne('upstream', 'show', 'Show an inference server', 'upstreams.show', show, { isCommon: true }),
    updateCommand(),
    commandOnOne(
      'upstream',
      'delete',
      'Delete an inference server; requests no longer go there',
      'upstreams.remove',
      ({ id }) => `Deleted ${id}`,
      { isCommon: true },
    ),
    checkCommand(),
    topCommand(),
  ])
}

function addCommand(): Command {
  const made = command('add', 'Add an inference server', [
    'upstreams add --name gpu --inference-url http://10.0.0.5:8000/v1',
    "upstreams add --name big --inference-url https://llm.example/v1 --credential-file key.txt --models 'meta/*' --priority 10",
    'upstreams add --name east --inference-url https://east.example/v1 --credential exchange:/var/run/secrets/east/token --exchange-policy 03e6381f-4326-41a0-b1a5-e93afff92aa9',
  ])
  return operationCommand(withOptions(made, 'create'), 'upstreams.add', fieldsOf, (row) =>
    [show(row), '', `Next: latchkey upstreams check ${JSON.stringify(row.name)}`, ...orderNote(row)].join('\n'),
  )
}

function listCommand(): Command {
  return operationCommand(
    command('list', 'List the inference servers in the order in which they are tried', ['upstreams list']),
    'upstreams.list',
    () => ({}),
    ({ data }) =>
      table(
        data,
        [
          ['NAME', (row) => row.name],
          ['PRIORITY', (row) => row.priority],
          ['BASE URL', (row) => row.base_url],
          ['MODELS', (row) => row.models.join(' ')],
          ['RUNNING', runningText],
          ['WAITING', (row) => row.waiting],
          ['RESTS', (row) => restsText(row.rests)],
          ['PROBE', (row) => probeText(row.probe)],
          [
            'CREDENTIAL',
            (row) => (row.credential_exchange !== null ? 'exchange' : row.has_credential ? 'set' : 'none'),
          ],
          ['MANAGED BY', (row) => row.managed_by],
          ['ID', (row) => row.id],
        ],
        'No upstreams. To add one: latchkey upstreams add --name gpu --inference-url http://127.0.0.1:8000/v1',
      ),
  )
}

function updateCommand(): Command {
  const made = command('update <upstream>', 'Change an inference server; takes effect immediately', [
    'upstreams update gpu --priority 1',
    "upstreams update gpu --models 'meta/*' 'mistral/*'",
  ])
    .option('--no-credential-file', 'remove the credential')
    .option('--no-credential', 'the same, also for one that is exchanged')
  return operationCommand(
    withOptions(made, 'change'),
    'upstreams.update',
    (given) => ({ upstream: given.words[0], ...fieldsOf(given) }),
    show,
  )
}

function checkCommand(): Command {
  const made = command('check [upstream]', 'Request the list of models from one inference server, or from all', [
    'upstreams check',
  ])
  return operationCommand(
    made,
    'upstreams.check',
    ({ words }) => ({ upstream: words[0] }),
    ({ data }) =>
      table(
        data,
        [
          ['', (row) => (row.ok ? '✓' : '✗'), stateTone],
          ['NAME', (row) => row.name],
          ['BASE URL', (row) => row.base_url],
          ['MODELS', (row) => row.models],
          ['TIME', (row) => `${row.milliseconds} ms`],
          ['PROBLEM', (row) => row.problem],
        ],
        'No upstreams',
      ),
    { isNegative: ({ data }) => data.some(({ ok }) => !ok) },
  )
}

function withOptions(made: Command, at: 'create' | 'change'): Command {
  return fieldOptions(made, upstreamFields, at)
    .option(
      '--credential-file <file>',
      'file that contains the credential that the server requires; - for standard input',
    )
    .option(
      '--credential <exchange:file>',
      'exchange the token in this file of the server for the credential, at the Latchkey of the URL',
      exchangeFile,
    )
    .option('--exchange-policy <id>', 'federation_policy_id at the other Latchkey')
    .option('--exchange-url <url>', 'token endpoint (RFC 8693) instead of that of the URL')
    .option('--exchange-audience <audience>', 'audience to send to the token endpoint')
    .option('--exchange-scope <scope>', 'scope to send to the token endpoint')
}

function readCredential(path: string | null | undefined): string | null | undefined {
  return typeof path === 'string' ? readTextFile(path).trim() : path
}

function exchangeFile(text: string): string {
  const path = /^exchange:(.+)$/.exec(text)?.[1]
  if (path === undefined) throw new InvalidArgumentError('use exchange: and the path of a file with a JWT')
  return resolve(path)
}

function exchangeOf({ credential, ...options }: Options): object | null | undefined {
  const { exchangeUrl: url, exchangePolicy: policy, exchangeAudience: audience, exchangeScope: scope } = options
  const more = [url, policy, audience, scope]
  if (typeof credential !== 'string') {
    if (more.some((value) => value !== undefined))
      throw new Fault('usage', 'Options that start with --exchange belong to --credential exchange:FILE; add it')
    return credential === false ? null : undefined
  }
  return { token_file: credential, url, policy, audience, scope }
}

function fieldsOf({ options }: Arguments): Record<string, unknown> {
  return {
    ...fieldInput(upstreamFields, options),
    credential: options.credential === false ? null : readCredential(removable(options.credentialFile)),
    credential_exchange: exchangeOf(options),
  }
}

if (import.meta.main) await runAlone(upstreamsCommand())
