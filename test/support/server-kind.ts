// Lets tests run on a server database: with LATCHKEY_TEST_DATABASE=server or rqlite on the stand-in, one for each folder, or on a
// real server if the environment names one (sqld.ts).
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { HranaServer } from './hrana-server.ts'
import { copyDatabase, databaseFileAt, isRealServer } from './sqld.ts'

export const testMasterKey = 'a1'.repeat(32)

export type ServerKind = {
  settings: { LATCHKEY_DATABASE_URL: string; LATCHKEY_MASTER_KEY: string }
  close: () => Promise<void>
}

const kind = process.env.LATCHKEY_TEST_DATABASE ?? (isRealServer ? 'server' : 'file')
if (!['file', 'server', 'rqlite'].includes(kind))
  throw new Error(`LATCHKEY_TEST_DATABASE is ${JSON.stringify(kind)}: use file, server or rqlite`)

/** Whether tests use a database on a server. */
export const isServerKind = kind !== 'file'

/** Where the database of each server of this process is kept, by URL. */
const paths = new Map<string, string>()

/** Where tests read a database, given by its path or by the URL of its server (sqld.ts). */
export function databaseFileOf(pathOrUrl: string): string {
  const path = paths.get(pathOrUrl)
  return path === undefined ? pathOrUrl : databaseFileAt(path)
}

const settingsByFolder = new Map<string, Record<string, string>>()

/** The settings for commands on the database of a test server in this folder. */
export function settingsIn(folder: string): Record<string, string> {
  return settingsByFolder.get(folder) ?? { LATCHKEY_DATABASE_URL: `file:${folder}/latchkey.db` }
}

/**
 * Settings for a new server database if the environment asks for one. It can begin as a copy of another, given by its path
 * or by the URL of its server.
 */
export async function serverKindFor(folder: string, copied?: string): Promise<ServerKind | undefined> {
  if (!isServerKind) return undefined
  const path = join(folder, 'server.db')
  if (copied !== undefined) await copyDatabase(paths.get(copied) ?? copied, path)
  const server = await startStandIn(path)
  paths.set(server.url, path)
  const settings = { LATCHKEY_DATABASE_URL: server.url, LATCHKEY_MASTER_KEY: testMasterKey }
  settingsByFolder.set(folder, settings)
  return { settings, close: server.close }
}

/** Deno loads this file too and has no bun:sqlite: there, the stand-in is a process of Bun. */
async function startStandIn(path: string): Promise<Pick<HranaServer, 'url' | 'close'>> {
  if ('Bun' in globalThis) return (await import('./hrana-server.ts')).startHranaServer({ path })
  const program = join(import.meta.dirname, 'hrana-server.ts')
  const child = spawn(process.env.LATCHKEY_TEST_BUN ?? 'bun', [program, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { url: line.toString().trim(), close: async () => void child.kill() }
}
