// `latchkey database`: moves an installation between a database file and a database server, and accepts a database that has gone back.
import type { Command } from 'commander'
import { Fault } from '../src/fault.ts'
import type { CopiedDatabase } from '../src/nodes/copy-database.ts'
import { parseSettings, readSettingTexts } from '../src/settings/config.ts'
import {
  command,
  dependencies,
  givenTo,
  group,
  print,
  readConfig,
  runAlone,
  settingSources,
  withSettings,
} from './shared/command-line.ts'
import { createProgress } from './shared/progress.ts'
import { printable } from './shared/render.ts'
import { table } from './shared/table.ts'
import { watchedCommits } from './shared/watched-commits.ts'

export function databaseCommand(): Command {
  const about = 'Move an installation between a database file and a database server, or accept an older state'
  return group('database', about, [copyCommand(), acceptOlderCommand()])
}

function copyCommand(): Command {
  const made = command('copy', 'Copy everything to a new database, and compare each table by number and SHA-256', [
    'database copy --from-url file:/var/lib/latchkey/latchkey.db --to-url https://db.example.com:8080',
    'database copy --from-url https://db.example.com:8080 --to-url file:/var/lib/latchkey/latchkey.db',
  ])
    .requiredOption('--from-url <url>', 'the database to copy; no server may use it')
    .requiredOption('--to-url <url>', 'a database without rows')
    .addHelpText(
      'after',
      `
One of the two is a file. LATCHKEY_DATABASE_TOKEN and LATCHKEY_DATABASE_CA_FILE belong to the server. The master key stays the same: give it to every
node. Stop all servers first. Afterward, set LATCHKEY_DATABASE_URL to the target.`,
    )
  const shown = ['LATCHKEY_DATABASE_TOKEN_FILE', 'LATCHKEY_DATABASE_CA_FILE'] as const
  return withSettings(made, { shown }).action(async (...all: unknown[]) => {
    const { options } = givenTo(all)
    const texts = readSettingTexts(settingSources(options))
    const [from, to] = [String(options.fromUrl), String(options.toUrl)]
    if (from.startsWith('file:') === to.startsWith('file:'))
      throw new Fault('usage', 'Copy from file:PATH to the URL of a server, or back')
    const sideOf = (url: string) => {
      const config = parseSettings({ ...texts, ...unused, LATCHKEY_DATABASE_URL: url })
      return {
        url,
        open: async (create: boolean) =>
          (await import('../src/nodes/load.ts')).openConfigured(config, create, {
            ...watchedCommits,
            migrates: create,
          }),
      }
    }
    const { copyDatabase } = await import('../src/nodes/copy-database.ts')
    const { onProgress, end } = createProgress(process.stderr, dependencies.monotonic)
    const copied = await copyDatabase(sideOf(from), sideOf(to), onProgress).finally(end)
    print(options.json === true ? JSON.stringify({ from, to, ...copied }, null, 2) : draw(copied, to))
  })
}

function acceptOlderCommand(): Command {
  const made = command(
    'accept-older',
    'Let servers of this machine start on a database that has gone back to an older state',
    [
      'database accept-older',
      'database accept-older --database-url rqlite://10.0.0.1:4001,10.0.0.2:4001,10.0.0.3:4001',
    ],
  ).addHelpText(
    'after',
    `
A server remembers the newest state that it has seen, beside the master key, and does not start on an older one. Before you accept it, disable again
the keys and policies that were disabled since: until then they are valid. Run this on each machine. After latchkey restore, it is not needed.`,
  )
  const shown = ['LATCHKEY_DATABASE_URL', 'LATCHKEY_MASTER_KEY_FILE'] as const
  return withSettings(made, { shown }).action(async (...all: unknown[]) => {
    const { options } = givenTo(all)
    const config = readConfig(options)
    const { acceptOlder, seenFileFor } = await import('../src/nodes/seen-state.ts')
    const file = seenFileFor(config.masterKey)
    if (file === undefined)
      throw new Fault(
        'usage',
        'The master key comes from the environment, so this machine remembers no state: start the server',
      )
    const { openOrRefuse } = await import('../src/nodes/load.ts')
    const database = await openOrRefuse(config, false, { ...watchedCommits, migrates: false })
    try {
      const { before, now } = await acceptOlder({ database, file })
      const states = { revision: now.revision.id, revision_before: before?.revision.id ?? null, file }
      print(options.json === true ? JSON.stringify(states, null, 2) : describeAccepted(states))
    } finally {
      await database.close()
    }
  })
}

function describeAccepted(states: { revision: number; revision_before: number | null; file: string }): string {
  const after = states.revision_before === null ? '' : ` after ${states.revision_before}`
  return `Accepted revision ${states.revision}${after}. Servers of this machine start on it (${printable(states.file)}).`
}

/** Nothing is decrypted, and no backup is made. */
const unused = {
  LATCHKEY_MASTER_KEY: '0'.repeat(64),
  LATCHKEY_MASTER_KEY_FILE: undefined,
  LATCHKEY_BACKUP_DIR: undefined,
}

function draw({ tables, rows }: CopiedDatabase, to: string): string {
  const listed = table(
    tables.filter((each) => each.rows > 0),
    [
      ['TABLE', (row) => row.table],
      ['ROWS', (row) => String(row.rows)],
      ['SHA-256', (row) => row.sha256.slice(0, 16)],
    ],
    'No rows',
  )
  return `${listed}\n\nCopied ${rows} rows to ${printable(to)}; both databases are equal.
Its audit log begins under a new name: give auditors the new verifier key, which \`latchkey audit key\` shows.`
}

if (import.meta.main) await runAlone(databaseCommand())
