// `latchkey backup`: writes a backup of the database, while a server runs or without one.
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { command, runAlone } from './shared/command-line.ts'
import { flagsOf, shellWord } from './shared/next-commands.ts'
import { operationCommand } from './shared/operation-command.ts'
import { printable } from './shared/render.ts'

export function backupCommand(): Command {
  const made = command('backup', 'Write a backup of the database, also while the server runs', [
    'backup --to /backup/latchkey.backup',
    'backup --to /backup/',
    'backup --to /backup/ --json',
  ])
    .requiredOption('--to <file|folder>', 'new file, or an existing folder in which the backup is named after the time')
    .addHelpText(
      'after',
      `
The server writes the file, as its own user. The backup contains everything that was acknowledged before the command began, and not the
master key: store that elsewhere. Check a backup with: latchkey restore FILE --verify`,
    )
  return operationCommand(
    made,
    'backup.create',
    ({ options }) => ({ to: absolute(String(options.to)) }),
    (response, { options }) => draw(response, flagsOf(options, ['config', 'databaseUrl'])),
    { unit: 'MB' },
  )
}

/** The server may run in another folder. A slash at the end means a folder. */
function absolute(path: string): string {
  return path.endsWith('/') ? `${resolve(path)}/` : resolve(path)
}

function draw({ file, bytes, duration_milliseconds, manifest }: OperationResponse<'backup.create'>, flags: string) {
  const { schema, tables, master_key_fingerprint: fingerprint } = manifest
  const rows = Object.values(tables).reduce((sum, table) => sum + table.rows, 0)
  const size = `${(bytes / 1e6).toFixed(1)} MB`
  const key = fingerprint === null ? 'its master key' : `the master key ${fingerprint}…`
  return [
    `Wrote ${printable(file)} (${size}, ${rows.toLocaleString('en-US')} rows, schema version ${schema}) in ${(duration_milliseconds / 1_000).toFixed(1)} s`,
    `A restore needs ${key}, which is not in the backup.`,
    `Check it: latchkey restore ${shellWord(file)} --verify${flags}`,
  ].join('\n')
}

if (import.meta.main) await runAlone(backupCommand())
