// Real libSQL servers behind the stand-in's door. LATCHKEY_TEST_SQLD is the command of one: each database is a process with
// its own folder. LATCHKEY_TEST_SQLD_URL is a running one: each database is a new namespace, which the tests create at
// LATCHKEY_TEST_SQLD_ADMIN_URL and leave there.
import { createHash } from 'node:crypto'
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd } from './at-end.ts'
import { freePort } from './free-port.ts'
import { isRealRqlite, rqliteEnd, rqliteFileAt } from './rqlited.ts'
import { until } from './until.ts'

/** Where a database is served: requests carry these headers. */
export type Sqld = { url: string; headers: Record<string, string>; close: () => Promise<void> }

const { LATCHKEY_TEST_SQLD, LATCHKEY_TEST_SQLD_URL, LATCHKEY_TEST_SQLD_ADMIN_URL } = process.env
const command = LATCHKEY_TEST_SQLD?.split(' ')
const running = LATCHKEY_TEST_SQLD_URL?.replace(/\/$/, '')
const admin = LATCHKEY_TEST_SQLD_ADMIN_URL?.replace(/\/$/, '')
if (running !== undefined && admin === undefined)
  throw new Error('Set LATCHKEY_TEST_SQLD_ADMIN_URL too: each test database is a new namespace')

/** Whether the environment names a real server. */
export const isRealServer = command !== undefined || running !== undefined

/** Where tests read the database that they keep at this path: a file, or the URL of a server and, after #, a namespace. */
export function databaseFileAt(path: string): string {
  if (isRealRqlite && process.env.LATCHKEY_TEST_DATABASE === 'rqlite') return rqliteFileAt(path)
  if (running !== undefined) return `${running}/#${namespaceOf(path)}`
  return command === undefined ? path : join(folderOf(path), 'dbs/default/data')
}

const folderOf = (path: string) => `${path}.sqld`
const namespaceOf = (path: string) => createHash('sha256').update(path).digest('hex').slice(0, 32)

/** Whether the files of the databases are on this machine, where tests can search them. */
export const hasDatabaseFiles = running === undefined

/** Copies a database that no process uses to another path. */
export async function copyDatabase(from: string, to: string): Promise<void> {
  if (running !== undefined) return administer(`${namespaceOf(from)}/fork/${namespaceOf(to)}`)
  for (const end of ['', '-wal', '.sqld', rqliteEnd])
    if (existsSync(from + end)) cpSync(from + end, to + end, { recursive: true })
}

/** Opens the database of a path on the real server that the environment names, and creates it if it does not exist. */
export async function openSqld(path: string): Promise<Sqld> {
  if (running === undefined) return startSqld(path)
  await administer(`${namespaceOf(path)}/create`)
  return { url: running, headers: { 'x-namespace': namespaceOf(path) }, close: async () => {} }
}

async function administer(path: string): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${admin}/v1/namespaces/${path}`, { method: 'POST', headers, body: '{}' })
  const text = await response.text()
  if (!response.ok && !text.includes('already exists')) throw new Error(`${path}: ${response.status} ${text}`)
}

/** Starts the server on a folder beside the path, which it creates, and waits until it serves. */
async function startSqld(path: string): Promise<Sqld> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const program = [...(command ?? []), '--no-welcome', '-d', folderOf(path), '--http-listen-addr', `127.0.0.1:${port}`]
  const child = Bun.spawn(program, {
    env: { PATH: process.env.PATH, RUST_LOG: 'off' },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'inherit',
  })
  // Some tests leave their database to the end.
  atEnd(() => child.kill('SIGKILL'))
  await until(`${LATCHKEY_TEST_SQLD}`, async () => {
    if (child.exitCode !== null) throw new Error(`${LATCHKEY_TEST_SQLD} ended with ${child.exitCode}`)
    return isServing(url)
  })
  const close = async () => {
    child.kill('SIGKILL')
    await child.exited
  }
  return { url, headers: {}, close }
}

async function isServing(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    ({ ok }) => ok,
    () => false,
  )
}
