// `latchkey restore`: proves that a backup restores, and puts it in the place of the database.
import { accessSync, constants } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { isServed } from '../src/admin/transport/client.ts'
import type { BackupCheck } from '../src/backup/verify.ts'
import { Fault } from '../src/fault.ts'
import { describeFolderDenial } from '../src/runtime/file-access.ts'
import { type Config, socketPathFor } from '../src/settings/config.ts'
import {
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
import { exitCodeFailed } from './shared/program.ts'
import { createProgress } from './shared/progress.ts'
import { printable } from './shared/render.ts'
import { paint, readTerminal } from './shared/terminal.ts'

type Outcome = { checks: BackupCheck[]; database: string | null; previous: string | null }

export function restoreCommand(): Command {
  const made = command('restore <file>', 'Check a backup, and put it in the place of the database', [
    'restore /backup/latchkey.backup --verify',
    'restore /backup/latchkey.backup',
    'restore /backup/latchkey.backup --json',
  ])
    .option('--verify', 'check the backup on a copy, and change nothing; a server may run')
    .option('--scratch <folder>', 'with --verify: where the copy is written (default: beside the backup)')
    .option('--without-master-key', 'the master key is lost: skip the checks that need it')
    .addHelpText(
      'after',
      `
Stop the server first, and put the master key of the backup in place. Every check must pass; then the copy that was checked becomes the
database. The old one stays beside it as NAME.before-restore-TIME. Exit code 1 if a check fails, and nothing has changed.`,
    )
  const shown = ['LATCHKEY_DATABASE_URL', 'LATCHKEY_MASTER_KEY_FILE', 'LATCHKEY_MASTER_KEY'] as const
  return withSettings(made, { shown }).action(async (...all: unknown[]) => {
    const { words, options } = givenTo(all)
    const file = resolve(words[0] ?? '')
    const outcome = await run(file, options)
    const isOk = outcome.checks.every(({ result }) => result !== 'failed')
    const { checks: data, database, previous } = outcome
    print(
      options.json === true
        ? JSON.stringify({ ok: isOk, file, database, previous, data }, null, 2)
        : draw(outcome, { isOk, isLost: options.withoutMasterKey === true, flags: flagsOf(options, settingFlags) }),
    )
    // A lock on a file that is no longer used may last as long as the process.
    process.exitCode = isOk ? 0 : exitCodeFailed
  })
}

async function run(file: string, options: Options): Promise<Outcome> {
  if (options.scratch !== undefined && options.verify !== true)
    throw new Fault('usage', '--scratch is for --verify; without it, the copy is written to the data folder')
  const config = readConfig(options)
  const { onProgress, end } = createProgress(process.stderr, dependencies.monotonic, 'MB')
  const verification = {
    file,
    masterKey: config.masterKey,
    withoutMasterKey: options.withoutMasterKey === true,
    now: dependencies.now,
    onProgress,
  }
  try {
    if (options.verify !== true) return await restore(config, verification)
    return await verifyOnly(verification, scratchFolder(file, options.scratch))
  } finally {
    end()
  }
}

type RestoreOptions = Parameters<typeof import('../src/backup/restore.ts').restoreBackup>[1]

async function restore(config: Config, verification: RestoreOptions): Promise<Outcome> {
  const { restoreBackup } = await import('../src/backup/restore.ts')
  const { retryWhileHeld } = await import('../src/server/retry-while-held.ts')
  const { forgetSeen } = await import('../src/nodes/seen-state.ts')
  if (config.databaseServer !== undefined)
    throw new Fault(
      'usage',
      'restore puts a database file in place; set LATCHKEY_DATABASE_URL to file:PATH. For a database server, see: latchkey help availability (rqlite), latchkey help cluster (libSQL)',
    )
  return retryWhileHeld(async () => {
    if (await isServed(socketPathFor(config)))
      throw new Fault('conflict', 'The server runs on this database. Stop the server first, then run this again')
    const restored = await restoreBackup(config.databasePath, verification)
    if (restored.database !== null) forgetSeen(config.masterKey)
    return restored
  })
}

async function verifyOnly(verification: RestoreOptions, folder: string): Promise<Outcome> {
  const { verifyBackup } = await import('../src/backup/verify.ts')
  const { removeScratch } = await import('../src/backup/restore.ts')
  const scratch = join(folder, `latchkey-verify-${crypto.randomUUID().slice(0, 8)}.db`)
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      removeScratch(scratch)
      process.exit(exitCodeFailed)
    })
  try {
    const { checks } = await verifyBackup({ ...verification, scratch })
    return { checks, database: null, previous: null }
  } finally {
    removeScratch(scratch)
  }
}

/** Beside the backup there is usually room for another one; the temporary folder may be in memory. */
function scratchFolder(file: string, given: Options['scratch']): string {
  if (given !== undefined) {
    const folder = resolve(String(given))
    const denial = describeFolderDenial(folder)
    if (denial !== undefined)
      throw new Fault('unavailable', `--scratch ${JSON.stringify(folder)} cannot be used: ${denial}`)
    return folder
  }
  try {
    accessSync(dirname(file), constants.W_OK)
    return dirname(file)
  } catch {
    return tmpdir()
  }
}

const settingFlags = ['config', 'databaseUrl', 'masterKeyFile']

function draw(
  { checks, database, previous }: Outcome,
  { isOk, isLost, flags }: { isOk: boolean; isLost: boolean; flags: string },
): string {
  const tone = { ok: 'green', failed: 'red', skipped: undefined } as const
  const lines = checks.map(({ check, result, detail }) =>
    [paint(result.padEnd(7), tone[result], readTerminal()), check.padEnd(12), printable(detail)].join('  '),
  )
  if (!isOk) return [...lines, '', 'The backup does not restore; nothing was changed.'].join('\n')
  if (database === null) return [...lines, '', 'The backup restores; nothing was changed.'].join('\n')
  return [
    ...lines,
    '',
    `Restored ${printable(database)}.`,
    ...(previous === null ? [] : [`The previous database is ${printable(previous)}.`]),
    'Its audit log begins under a new name: give auditors the new verifier key, which `latchkey audit key` shows.',
    `Next: latchkey ${isLost ? 'master-key replace --lost' : 'serve'}${flags}`,
  ].join('\n')
}

if (import.meta.main) await runAlone(restoreCommand())
