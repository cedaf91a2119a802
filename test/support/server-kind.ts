// Lets tests run on a server database: LATCHKEY_TEST_DATABASE=server uses the stand-in, one for each folder, and with
// LATCHKEY_TEST_SQLD a real server behind it. LATCHKEY_TEST_SQLD_URL uses a running one, which must belong to the tests
// alone and is emptied for each test database, so a test with two databases at once fails on it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@libsql/client/http'
import type { HranaServer } from './hrana-server.ts'

export const testMasterKey = 'a1'.repeat(32)

export type ServerKind = {
  settings: { LATCHKEY_DATABASE_URL: string; LATCHKEY_MASTER_KEY: string }
  close: () => Promise<void>
}

const { LATCHKEY_TEST_DATABASE: kind, LATCHKEY_TEST_SQLD_URL: sqldUrl } = process.env
if (kind !== undefined && !['file', 'server'].includes(kind))
  throw new Error(`LATCHKEY_TEST_DATABASE is ${JSON.stringify(kind)}: use file or server`)

/** Whether tests use a database on a server, and whether it is the stand-in. */
export const isServerKind = sqldUrl !== undefined || kind === 'server'
export const isStandIn = sqldUrl === undefined && kind === 'server'

/** The file behind each stand-in of this process, by URL: tests look into it. */
const files = new Map<string, string>()

/** The file of a database, given by its path or by the URL of a stand-in. The URL of a real server is returned as it is. */
export function databaseFileOf(path: string): string {
  return files.get(path) ?? path
}

const settingsByFolder = new Map<string, Record<string, string>>()

/** The settings for commands on the database of a test server in this folder. */
export function settingsIn(folder: string): Record<string, string> {
  return settingsByFolder.get(folder) ?? { LATCHKEY_DATABASE_URL: `file:${folder}/latchkey.db` }
}

/** Settings for a new server database if the environment asks for one. A stand-in can begin with a copy of a file. */
export async function serverKindFor(folder: string, copied?: string): Promise<ServerKind | undefined> {
  if (sqldUrl !== undefined) {
    await empty(sqldUrl)
    return { settings: settingsFor(folder, sqldUrl), close: async () => {} }
  }
  if (!isStandIn) return undefined
  const path = join(folder, 'server.db')
  // A real server behind the stand-in has a folder beside the file.
  for (const end of ['', '-wal', '.sqld'])
    if (copied !== undefined && existsSync(copied + end)) cpSync(copied + end, path + end, { recursive: true })
  const server = await startStandIn(path)
  files.set(server.url, server.file)
  return { settings: settingsFor(folder, server.url), close: server.close }
}

/** Deno loads this file too and has no bun:sqlite: there, the stand-in is a process of Bun. */
async function startStandIn(path: string): Promise<Pick<HranaServer, 'url' | 'file' | 'close'>> {
  if ('Bun' in globalThis) return (await import('./hrana-server.ts')).startHranaServer({ path })
  const program = join(import.meta.dirname, 'hrana-server.ts')
  const child = spawn(process.env.LATCHKEY_TEST_BUN ?? 'bun', [program, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { url: line.toString().trim(), file: path, close: async () => void child.kill() }
}

function settingsFor(folder: string, url: string): ServerKind['settings'] {
  const settings = { LATCHKEY_DATABASE_URL: url, LATCHKEY_MASTER_KEY: testMasterKey }
  settingsByFolder.set(folder, settings)
  return settings
}

async function empty(url: string): Promise<void> {
  const client = createClient({ url })
  const { rows } = await client.execute(
    "select type, name from sqlite_master where type in ('table', 'view') and name not like 'sqlite_%'",
  )
  await client.migrate(rows.map(({ type, name }) => `drop ${String(type)} "${String(name)}"`))
  client.close()
}
