// `latchkey init`: creates the database and the first management key.
import { closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Command, Option } from 'commander'
import { describeError, Fault } from '../src/fault.ts'
import type { Config } from '../src/settings/config.ts'
import { callOperation } from './shared/call-operation.ts'
import {
  type Arguments,
  command,
  dependencies,
  givenTo,
  type Options,
  print,
  readConfig,
  runAlone,
  withSettings,
} from './shared/command-line.ts'
import { flagsOf } from './shared/next-commands.ts'
import { printable } from './shared/render.ts'

type InitResult = { database: string; master_key_file: string | null; key: string }

export function initCommand(): Command {
  const made = command(
    'init',
    'Create the database, a default organization and workspace, and the first management key (shown once)',
    [
      'init',
      'init --database-url file:/var/lib/latchkey/latchkey.db',
      'init --json',
      'init --if-missing --key-file first-management-key',
    ],
  )
    .option('--owner <user>', 'user of the first key (default: admin)')
    .option('--if-missing', 'succeed without a change if the database is already initialized')
    .addOption(
      new Option(
        '--key-file <file>',
        'write the management key to this new file (mode 0600), not to the terminal',
      ).conflicts('json'),
    )
  const shown = ['LATCHKEY_DATABASE_URL', 'LATCHKEY_MASTER_KEY_FILE', 'LATCHKEY_MASTER_KEY'] as const
  return withSettings(made, { shown }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const { options } = given
    const config = readConfig(options)
    try {
      const response = await withKeyFile(options, () =>
        callOperation(config, dependencies, 'init', { owner: options.owner }),
      )
      print(options.json === true ? JSON.stringify(response, null, 2) : draw(response, given, config))
    } catch (error) {
      if (options.ifMissing !== true || !isInitializedAlready(error)) throw error
      const database = config.databasePath
      print(
        options.json === true
          ? JSON.stringify({ database, key: null })
          : `${printable(database)} is already initialized.`,
      )
    }
  })
}

function isInitializedAlready(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'already_initialized'
}

/** Opens a file before the key is made, because the key is never shown again. */
async function withKeyFile(options: Options, initialize: () => Promise<InitResult>): Promise<InitResult> {
  if (options.keyFile === undefined) return initialize()
  const path = String(options.keyFile)
  if (options.ifMissing !== true && existsSync(path))
    throw new Fault('usage', `${JSON.stringify(path)} exists; --key-file needs a new file`)
  const draft = `${path}.part`
  const file = open(draft)
  try {
    const made = await initialize()
    writeFileSync(file, `${made.key}\n`, { flush: true })
    renameSync(draft, path)
    return made
  } finally {
    closeSync(file)
    rmSync(draft, { force: true })
  }
}

function open(path: string): number {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    return openSync(path, 'w', 0o600)
  } catch (error) {
    throw new Fault('usage', `The key file cannot be created: ${describeError(error)}`)
  }
}

function draw({ database, master_key_file, key }: InitResult, { options }: Arguments, { upstreamUrl }: Config): string {
  const where = flagsOf(options, ['config', 'databaseUrl'])
  const masterKey = flagsOf(options, ['masterKeyFile'])
  const upstream = upstreamUrl === undefined ? ' --upstream-url http://127.0.0.1:8000/v1' : ''
  return [
    `Created ${printable(database)} with the organization "default" on the enterprise plan.`,
    master_key_file === null
      ? 'The master key is the value of LATCHKEY_MASTER_KEY. The server needs the same value.'
      : `The master key is in ${printable(master_key_file)}. The server needs it. Back it up separately from the database.`,
    '',
    ...(options.keyFile === undefined
      ? ['First management key (shown only once):', `  ${key}`]
      : [`First management key: in ${printable(String(options.keyFile))}`]),
    '',
    'Next:',
    `  latchkey keys create --name my-app${where}`,
    `  latchkey issuers add --name my-idp --issuer-url https://idp.example.com${where}`,
    `  latchkey policies create --name my-app --issuer my-idp --audience latchkey --subject my-workload --key my-app${where}`,
    `  latchkey serve${upstream}${where}${masterKey}`,
  ].join('\n')
}

if (import.meta.main) await runAlone(initCommand())
