// `latchkey upstreams`: the inference servers behind this service.
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { type Arguments, command, group, runAlone } from './shared/command-line.ts'
import { readTextFile } from './shared/input-files.ts'
import { commandOnOne, operationCommand } from './shared/operation-command.ts'
import { removable, wholeNumber } from './shared/option-values.ts'
import { record } from './shared/render.ts'
import { table } from './shared/table.ts'
import { stateTone } from './shared/terminal.ts'

type Upstream = OperationResponse<'upstreams.show'>

const show = (row: Upstream) =>
  record({
    id: row.id,
    name: row.name,
    'base URL': row.base_url,
    credential: row.has_credential ? 'set' : 'none',
    models: row.models.join(' '),
    priority: row.priority,
    'private CA': row.ca_pem === null ? 'none' : 'set',
    'first byte within': `${row.first_byte_seconds} s`,
    'silent for at most': `${row.idle_seconds} s`,
    'extra request headers': row.forward_headers.join(' ') || 'none',
    'extra response headers': row.return_headers.join(' ') || 'none',
  })

export function upstreamsCommand(): Command {
  const add = command('add', 'Add an inference server', [
    'upstreams add --name gpu --url http://10.0.0.5:8000/v1',
    "upstreams add --name big --url https://llm.example/v1 --credential-file key.txt --models 'meta/*' --priority 10",
  ])
    .requiredOption('--name <name>', 'what to call it')
    .requiredOption('--url <url>', 'base URL, usually ends in /v1')
  const update = command('update <upstream>', 'Change an inference server; takes effect at once', [
    'upstreams update gpu --priority 1',
    "upstreams update gpu --models 'meta/*' 'mistral/*'",
  ])
    .option('--name <name>', 'new name')
    .option('--url <url>', 'new base URL')
    .option('--no-credential-file', 'send no credential any more')
    .option('--no-ca-file', 'trust the public certificates again')
    .option('--no-forward-header', 'pass on only the request headers that inference needs')
    .option('--no-return-header', 'pass on only the response headers that clients use')
  const check = command('check [upstream]', 'Ask an inference server, or all of them, for its models', [
    'upstreams check',
  ])
  return group(
    'upstreams',
    'Inference servers that requests are forwarded to, beside the one of LATCHKEY_UPSTREAM_URL',
    [
      operationCommand(
        fieldOptions(add),
        'upstreams.add',
        (given) => fieldsOf(given),
        (row) => [show(row), '', `Next: latchkey upstreams check ${JSON.stringify(row.name)}`].join('\n'),
      ),
      operationCommand(
        command('list', 'List the inference servers, in the order in which they are tried', ['upstreams list']),
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
              ['CREDENTIAL', (row) => (row.has_credential ? 'set' : 'none')],
              ['ID', (row) => row.id],
            ],
            'No upstreams; add one with: latchkey upstreams add --name gpu --url http://127.0.0.1:8000/v1',
          ),
      ),
      commandOnOne('upstream', 'show', 'Show an inference server', 'upstreams.show', show, { isCommon: true }),
      operationCommand(
        fieldOptions(update),
        'upstreams.update',
        (given) => ({ upstream: given.words[0], ...fieldsOf(given) }),
        show,
      ),
      commandOnOne(
        'upstream',
        'remove',
        'Forward nothing to an inference server any more',
        'upstreams.remove',
        ({ id }) => `Removed ${id}`,
        { isCommon: true },
      ),
      operationCommand(
        check,
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
      ),
    ],
  )
}

function fieldOptions(made: Command): Command {
  return made
    .option('--credential-file <file>', 'file that holds the credential it asks for; - for standard input')
    .option('--models <pattern...>', 'models it serves; * stands for any characters (default: all)')
    .option('--priority <number>', 'the lowest is tried first, 0 to 100 (default: 100)', wholeNumber)
    .option('--ca-file <file>', 'certificates (PEM) to trust instead of the public ones')
    .option('--first-byte <seconds>', 'how long it may take to begin its answer (default: 600)', wholeNumber)
    .option('--idle <seconds>', 'how long it may be silent within an answer (default: 300)', wholeNumber)
    .option('--forward-header <name...>', 'also pass these request headers on to it; never credentials')
    .option('--return-header <name...>', 'also pass these response headers on to callers')
}

function fieldsOf({ options }: Arguments): Record<string, unknown> {
  const [credentialFile, caFile] = [removable(options.credentialFile), removable(options.caFile)]
  return {
    name: options.name,
    base_url: options.url,
    credential: typeof credentialFile === 'string' ? readTextFile(credentialFile).trim() : credentialFile,
    models: options.models,
    priority: options.priority,
    ca_pem: typeof caFile === 'string' ? readTextFile(caFile) : caFile,
    first_byte_seconds: options.firstByte,
    idle_seconds: options.idle,
    forward_headers: removable(options.forwardHeader),
    return_headers: removable(options.returnHeader),
  }
}

if (import.meta.main) await runAlone(upstreamsCommand())
