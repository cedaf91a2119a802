// An installation moves from a database file to a server and back, and every row comes along.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Database } from '../../db/file/open.ts'
import { createWriter } from '../../db/write/write.ts'
import { dependencies } from '../../scripts/shared/command-line.ts'
import { runInProcess } from '../../scripts/shared/in-process.ts'
import type { OperationResponse } from '../../src/admin/operations.ts'
import { archiveRows } from '../../src/archive/archive-rows.ts'
import { createAuditLog } from '../../src/audit-log/audit-log.ts'
import { verifyDatabase } from '../../src/audit-log/verify-database.ts'
import { copyDatabase } from '../../src/nodes/copy-database.ts'
import { openConfigured } from '../../src/nodes/load.ts'
import { loadConfig } from '../../src/settings/config.ts'
import { type HranaServer, startHranaServer } from '../support/hrana-server.ts'
import { startTestServer, type TestServer, temporaryFolder } from '../support/latchkey.ts'
import { rejectionOf } from '../support/rejection.ts'
import { auditRow, insertOrganizationRows, organizationRows } from '../support/rows.ts'
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
  for (const name of ['e', 'd', 'c', 'b', 'a']) await server.admin('keys.create', { name })
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
  // Lists have this order. Ids are random.
  const namesAt = async (url: string) => {
    const opened = await openedAt(url)
    const { rows } = await opened.client.execute('select name from api_keys order by rowid')
    await opened.close()
    return rows.map(({ name }) => name)
  }
  expect(await namesAt(file)).toEqual(await namesAt(database.url))
  expect(await namesAt(file)).toEqual(expect.arrayContaining(['target', 'e', 'd', 'c', 'b', 'a']))
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

test('archives and pruned entries come along, and the copy begins a new audit log that verifies', async () => {
  const [from, to] = [
    await startHranaServer({ path: join(folder.path, 'log.db') }),
    `file:${join(folder.path, 'log-copy.db')}`,
  ]
  const logOf = (opened: Database) => {
    const writer = createWriter(opened, () => {})
    const auditLog = { mode: 'full', folder: undefined } as const
    const masterKey = { kind: 'value', hex: testMasterKey } as const
    const log = createAuditLog({ database: opened, writer, auditLog, masterKey, now: Date.now, log: () => {} })
    return { writer, log }
  }
  const source = await openedAt(from.url, true)
  const { writer, log } = logOf(source)
  await writer.write(insertOrganizationRows(source, organizationRows('acme')))
  const rows = Array.from({ length: 800 }, (_, id) => ({ ...auditRow(`request ${id}`), at: id + 1 }))
  await Promise.all(rows.map((row) => writer.appendAudit(row)))
  const before = await log.checkpoint()
  const { orm, reader } = source
  const context = {
    ...{ database: source, node: null, orm, reader, writer, now: Date.now },
    rest: async () => {},
    log: () => {},
  }
  const due = { kind: 'exchanges', before: 700, folder: folder.path, by: { kind: 'local' } } as const
  await archiveRows(context, due, { onProgress: () => {}, onArchived: () => {} })
  expect(await log.prune()).toBe(256)
  await writer.close()
  await source.close()

  await copyDatabase(sideOf(from.url), sideOf(to), () => {})
  const target = await openedAt(to)
  const copied = logOf(target)
  const after = await copied.log.checkpoint()
  expect(after.epoch).not.toBe(before.epoch)
  const found = await verifyDatabase(target.orm, { epoch: after.epoch, mode: 'full' })
  expect(found).toMatchObject({ problems: [], pruned: 256, uncovered: 0, checkpoints: 1 })
  const { rows: records } = await target.client.execute("select body from log_records where kind = 'restore'")
  expect(records).toMatchObject([{ body: expect.stringContaining(`${before.size}`) }])
  await copied.writer.close()
  await target.close()
  await from.close()
})
