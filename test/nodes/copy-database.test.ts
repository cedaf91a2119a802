// An installation moves from a database file to a server and back, and every row comes along.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { dependencies } from '../../scripts/shared/command-line.ts'
import { runInProcess } from '../../scripts/shared/in-process.ts'
import type { OperationResponse } from '../../src/admin/operations.ts'
import { copyDatabase } from '../../src/nodes/copy-database.ts'
import { openConfigured } from '../../src/nodes/load.ts'
import { loadConfig } from '../../src/settings/config.ts'
import { type HranaServer, startHranaServer } from '../support/hrana-server.ts'
import { startTestServer, type TestServer, temporaryFolder } from '../support/latchkey.ts'
import { rejectionOf } from '../support/rejection.ts'
import { testMasterKey } from '../support/server-kind.ts'

const folder = temporaryFolder()
let database: HranaServer
let server: TestServer
const configOf = (url: string) =>
  loadConfig({ flags: { LATCHKEY_DATABASE_URL: url, LATCHKEY_MASTER_KEY: testMasterKey }, environment: {} })
const sideOf = (url: string) => ({ url, open: (create: boolean) => openConfigured(configOf(url), create) })
async function openedAt(url: string, create = false) {
  const opened = await sideOf(url).open(create)
  if ('refused' in opened) throw new Error(opened.message)
  return opened
}
type Examined = OperationResponse<'doctor.examine'>

beforeAll(async () => {
  database = await startHranaServer({ path: join(folder.path, 'server.db') })
  server = await startTestServer({
    settings: { LATCHKEY_DATABASE_URL: database.url, LATCHKEY_MASTER_KEY: testMasterKey },
  })
  await server.admin('keys.create', { name: 'target', limit: 5 })
  await server.admin('issuers.add', { name: 'idp', issuer_url: 'https://idp.example.com' })
  await server.admin('policies.create', { name: 'p', issuer: 'idp', key: 'target', audience: 'a', subject: 's' })
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'system', content: 'Be brief' }] })
  await server.admin('presets.save', { preset: 'brief', dialect: 'chat', body })
})
afterAll(async () => {
  await database.close()
  folder.remove()
})

test('a command examines the nodes, and expects no backups of a file', async () => {
  const examine = async () => {
    const config = configOf(database.url)
    const call = { name: 'doctor.examine', input: {}, user: { osUser: 'root', sudoUser: null } } as const
    const { findings } = (await runInProcess(config, dependencies, call, async () => undefined)) as Examined
    return findings.filter(({ area }) => area === 'server' || area === 'backup').map(({ code }) => code)
  }
  expect(await examine()).toEqual(['backup_unknown'])
})

test('a running node keeps its database from being copied, a stopped one does not', async () => {
  const file = `file:${join(folder.path, 'copy.db')}`
  const copy = () => copyDatabase(sideOf(database.url), sideOf(file), () => {})
  await expect(copy()).rejects.toThrow('Stop them first')
  await server.stop()
  const { tables, rows } = await copy()
  expect(rows).toBeGreaterThan(8)
  expect(tables.find(({ table }) => table === 'policies')).toMatchObject({ rows: 1 })
  expect(tables.map(({ table }) => table)).toContain('installation')
})

test('a target with rows is refused', async () => {
  await expect(copyDatabase(sideOf(database.url), sideOf(database.url), () => {})).rejects.toThrow('is not empty')
})

test('a source that changes during the copy is reported, and the copy is refused', async () => {
  const source = await openedAt(database.url)
  const server = await startHranaServer({ path: join(folder.path, 'changed.db') })
  const target = sideOf(server.url)
  const changing = async () => {
    const opened = await openedAt(target.url, true)
    const commit: typeof opened.commit = async (statements) => {
      await source.commit([{ sql: 'delete from usage where false', args: [] }])
      await opened.commit(statements)
    }
    return { ...opened, commit }
  }
  const copy = copyDatabase(sideOf(database.url), { ...target, open: changing }, () => {})
  expect((await rejectionOf(copy)).message).toBe(
    `${database.url} changed meanwhile. Stop all nodes and commands, remove the target and copy again`,
  )
  await source.close()
  expect(await target.open(false)).toMatchObject({ message: expect.stringContaining('interrupted') })
  await server.close()
})

test('a copy with as many rows, one of which differs, is refused', async () => {
  const server = await startHranaServer({ path: join(folder.path, 'differs.db') })
  const target = sideOf(server.url)
  const changing = async () => {
    const opened = await openedAt(target.url, true)
    const commit: typeof opened.commit = (statements) => {
      const isKeys = statements.some(({ sql }) => sql.startsWith('insert into api_keys'))
      const change = { sql: "update api_keys set label = label || '!'", args: [] }
      return opened.commit(isKeys ? [...statements, change] : statements)
    }
    return { ...opened, commit }
  }
  const fault = await rejectionOf(copyDatabase(sideOf(database.url), { ...target, open: changing }, () => {}))
  expect(fault.message).toContain('The copy of api_keys differs from its source')
  await server.close()
})

test('an interrupted copy is refused by anyone who opens it', async () => {
  const target = await startHranaServer({ path: join(folder.path, 'half.db') })
  const half = sideOf(target.url)
  const copy = copyDatabase(sideOf(database.url), half, () => {
    throw new Error('interrupted')
  })
  expect((await rejectionOf(copy)).message).toBe('interrupted')
  expect(await half.open(false)).toMatchObject({ message: expect.stringContaining('interrupted') })
  await target.close()
})
