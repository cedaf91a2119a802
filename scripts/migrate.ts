// `latchkey migrate`: brings a database to the schema of this program before a server starts, however long that takes.
import type { Command } from 'commander'
import { latestSchema } from '../db/schema/migrate.ts'
import { isServed } from '../src/admin/transport/client.ts'
import { openOrRefuse } from '../src/nodes/load.ts'
import { socketPathFor } from '../src/settings/config.ts'
import { command, givenTo, print, readConfig, runAlone, withSettings } from './shared/command-line.ts'

type MigrationResult = { from: number; to: number; server: boolean }

export function migrateCommand(): Command {
  const made = command('migrate', 'Bring the database to the schema of this program', [
    'migrate --config /etc/latchkey/latchkey.conf',
    'migrate --json',
  ]).addHelpText(
    'after',
    `
A server does the same when it starts. With many rows, that takes minutes, which is longer than a service manager waits for a server: the systemd unit
runs this command first. An interrupted migration goes on with the step at which it was interrupted. While a server runs, there is nothing to do.`,
  )
  return withSettings(made, { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const { options } = givenTo(all)
    const config = readConfig(options)
    const isRunning = await isServed(socketPathFor(config))
    const migrated = { to: latestSchema, server: isRunning, from: isRunning ? latestSchema : await migrate(config) }
    print(options.json === true ? JSON.stringify(migrated) : draw(migrated))
  })
}

/** Returns the schema version that the database had. */
async function migrate(config: ReturnType<typeof readConfig>): Promise<number> {
  const database = await openOrRefuse(config, false, {})
  await database.close()
  return database.migratedFrom ?? latestSchema
}

function draw({ from, to, server }: MigrationResult): string {
  if (server) return 'A server runs on this database and has migrated it'
  return from === to ? `The database has schema version ${to} already` : `Migrated from schema version ${from} to ${to}`
}

if (import.meta.main) await runAlone(migrateCommand())
