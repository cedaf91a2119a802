// `latchkey master-key`: the key that encrypts signing keys and upstream credentials.
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { Fault } from '../src/fault.ts'
import { isMasterKey } from '../src/tokens/master-key-file.ts'
import { callWithoutServer } from './shared/call-operation.ts'
import {
  command,
  dependencies,
  givenTo,
  group,
  type Options,
  print,
  readConfig,
  runAlone,
  withSettings,
} from './shared/command-line.ts'
import { readTextFile } from './shared/input-files.ts'
import { flagsOf, shellWord } from './shared/next-commands.ts'
import { printable } from './shared/render.ts'

type Replacement = OperationResponse<'master_key.replace'>

const newKeyName = 'LATCHKEY_NEW_MASTER_KEY'

export function masterKeyCommand(): Command {
  const replace = command('replace', 'Encrypt everything under a new master key, with the server stopped', [
    'master-key replace',
    'master-key replace --new-key-file new.key',
    'master-key replace --lost --dry-run',
    'master-key replace --lost --yes',
  ])
    .option(
      '--new-key-file <file>',
      `file that contains the new key (64 hex digits); - for standard input; or set ${newKeyName} (default: a new random key)`,
    )
    .option(
      '--lost',
      'the old key is lost: create a signing key, invalidate all access tokens, remove upstream credentials',
    )
    .option('--yes', 'with --lost: do not ask for confirmation')
    .option('--dry-run', 'show what would change without changing it')
  const shown = ['LATCHKEY_DATABASE_URL', 'LATCHKEY_MASTER_KEY_FILE', 'LATCHKEY_MASTER_KEY'] as const
  withSettings(replace, { shown }).action(async (...all: unknown[]) => replaceMasterKey(givenTo(all).options))
  return group('master-key', 'The key that encrypts signing keys and upstream credentials', [replace])
}

async function replaceMasterKey(options: Options): Promise<void> {
  const config = readConfig(options)
  const newKey = newKeyOf(options)
  const input = { lost: options.lost === true, ...(newKey === undefined ? {} : { new_key: newKey }) }
  const run = (dryRun: boolean) =>
    callWithoutServer(config, dependencies, 'master_key.replace', { ...input, dry_run: dryRun })
  const isDryRun = options.dryRun === true
  if (input.lost && !isDryRun && options.yes !== true) await confirm(options, () => run(true))
  const answer = await run(isDryRun)
  print(
    options.json === true
      ? JSON.stringify(answer, null, 2)
      : draw(answer, {
          isGiven: newKey !== undefined,
          flags: flagsOf(options, ['config', 'databaseUrl', 'masterKeyFile']),
        }),
  )
}

/** Never an argument, which other users of the machine can read. */
function newKeyOf({ newKeyFile }: Options): string | undefined {
  const value = process.env[newKeyName] || undefined
  if (newKeyFile === undefined) return value === undefined ? undefined : checked(value, newKeyName)
  if (value !== undefined) throw new Fault('usage', `${newKeyName} and --new-key-file are both set; use one of them`)
  return checked(readTextFile(String(newKeyFile), 1_024).trim(), JSON.stringify(newKeyFile))
}

function checked(key: string, place: string): string {
  if (isMasterKey(key)) return key
  throw new Fault('usage', `${place} must contain 64 hex digits; to create a key: openssl rand -hex 32`)
}

/** @throws Fault unless someone at a terminal confirms the plan */
async function confirm({ json }: Options, plan: () => Promise<Replacement>): Promise<void> {
  if (json === true || !process.stdin.isTTY || !process.stdout.isTTY)
    throw new Fault(
      'usage',
      'Everything that only the lost key can decrypt will be removed permanently; add --yes to confirm, or --dry-run to see it',
    )
  print(planLines(await plan()).join('\n'))
  const asking = createInterface({ input: process.stdin, output: process.stdout })
  const answer = await asking.question('Continue? [y/N] ')
  asking.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new Fault('conflict', 'Nothing was changed')
}

type GivenKey = { isGiven: boolean; flags: string }

function draw(answer: Replacement, given: GivenKey): string {
  const { dry_run, finished, database } = answer
  if (answer.signing_keys_reencrypted + answer.signing_keys_ended === 0)
    return finished
      ? `Finished the interrupted replacement of the master key of ${printable(database)}; nothing else was changed.`
      : `${printable(database)} already uses this master key; nothing was changed.`
  const lines = planLines(answer)
  if (dry_run) return [...lines, 'Nothing was changed: this was a dry run.'].join('\n')
  return [...lines, '', 'Next:', ...nextLines(answer, given).map((line) => `  ${line}`)].join('\n')
}

function planLines(answer: Replacement): string[] {
  const title = answer.dry_run ? 'This replaces' : 'Replaced'
  const lines = answer.lost ? lostLines(answer) : keptLines(answer)
  return [`${title} the master key of ${printable(answer.database)}:`, ...lines]
}

function keptLines({ signing_keys_reencrypted, credentials_reencrypted }: Replacement): string[] {
  return [
    `  signing keys encrypted under the new key: ${signing_keys_reencrypted}; access tokens stay valid`,
    `  upstream credentials encrypted under the new key: ${listOf(credentials_reencrypted)}`,
  ]
}

function lostLines({ signing_keys_ended, credentials_dropped }: Replacement): string[] {
  return [
    `  signing keys ended: ${signing_keys_ended}, which invalidates every access token; a new signing key was created`,
    `  upstream credentials removed: ${listOf(credentials_dropped)}`,
  ]
}

function nextLines(answer: Replacement, { isGiven, flags }: GivenKey): string[] {
  const { lost, master_key_file, previous_master_key_file: previous, credentials_dropped } = answer
  const where =
    master_key_file === null
      ? lost && !isGiven
        ? 'Keep the value of LATCHKEY_MASTER_KEY, which is the new key.'
        : 'Set LATCHKEY_MASTER_KEY to the new key before you start the server.'
      : `Back up the new key, in ${printable(master_key_file)}, separately from the database.`
  const old =
    previous === null
      ? 'Older backups of the database still need the old key.'
      : `The previous key file is ${printable(previous)}. Older backups of the database need the old key; delete them together.`
  const stolen = `If the old key was stolen together with the database: latchkey signing-keys rotate --revoke${flags}, and new upstream credentials.`
  const credentials = credentials_dropped.map(
    (name) => `latchkey upstreams update ${shellWord(name)} --credential-file FILE${flags}`,
  )
  const rest = lost ? credentials : [stolen]
  return [where, ...(lost && previous === null ? [] : [old]), ...rest, `latchkey serve${flags}`]
}

function listOf(names: string[]): string {
  return names.length === 0 ? 'none' : names.map(printable).join(', ')
}

if (import.meta.main) await runAlone(masterKeyCommand())
