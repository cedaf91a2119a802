// Lets tests run on a server database: LATCHKEY_TEST_DATABASE=server uses the stand-in, one for each folder, and with
// LATCHKEY_TEST_SQLD a real server behind it. LATCHKEY_TEST_SQLD_URL uses a running one, which must belong to the tests
// alone and is emptied for each test server, so a test with two servers at once fails on it.
import { join } from 'node:path'
import { createClient } from '@libsql/client/http'

export const testMasterKey = 'a1'.repeat(32)

export type ServerKind = { settings: Record<string, string>; close: () => Promise<void> }

/** The file behind each stand-in of this process, by URL: tests look into it. */
const files = new Map<string, string>()

/** The file of a database, given by its path or by the URL of a stand-in. */
export function databaseFileOf(path: string): string {
  return files.get(path) ?? path
}

const settingsByFolder = new Map<string, Record<string, string>>()

/** The settings for commands on the database of a test server in this folder. */
export function settingsIn(folder: string): Record<string, string> {
  return settingsByFolder.get(folder) ?? { LATCHKEY_DATABASE_URL: `file:${folder}/latchkey.db` }
}

/** Settings for a new server database if the environment asks for one. */
export async function serverKindFor(folder: string): Promise<ServerKind | undefined> {
  const { LATCHKEY_TEST_DATABASE: kind, LATCHKEY_TEST_SQLD_URL: url } = process.env
  if (url !== undefined) {
    await empty(url)
    return { settings: settingsFor(url), close: async () => {} }
  }
  if (kind !== 'server') return undefined
  const path = join(folder, 'server.db')
  // Deno has no bun:sqlite, and loads this file too.
  const { startHranaServer } = await import('./hrana-server.ts')
  const server = await startHranaServer({ path })
  files.set(server.url, server.file)
  const settings = settingsFor(server.url)
  settingsByFolder.set(folder, settings)
  return { settings, close: server.close }
}

function settingsFor(url: string): Record<string, string> {
  return { LATCHKEY_DATABASE_URL: url, LATCHKEY_MASTER_KEY: testMasterKey }
}

async function empty(url: string): Promise<void> {
  const client = createClient({ url })
  const { rows } = await client.execute(
    "select type, name from sqlite_master where type in ('table', 'view') and name not like 'sqlite_%'",
  )
  await client.migrate(rows.map(({ type, name }) => `drop ${String(type)} "${String(name)}"`))
  client.close()
}
