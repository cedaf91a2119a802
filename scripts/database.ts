// `latchkey database`: moves an installation between a database file and a database server.
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
  runAlone,
  settingSources,
  withSettings,
} from './shared/command-line.ts'
import { createProgress } from './shared/progress.ts'
import { printable } from './shared/render.ts'
import { table } from './shared/table.ts'
import { watchedCommits } from './shared/watched-commits.ts'

export function databaseCommand(): Command {
  return group('database', 'Move an installation between a database file and a database server', [copyCommand()])
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
  return `${listed}\n\nCopied ${rows} rows to ${printable(to)}; both databases are equal.`
}

if (import.meta.main) await runAlone(databaseCommand())
