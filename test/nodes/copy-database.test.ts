// An installation moves from a database file to a server and back, and every row comes along.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { loadConfig } from '../../src/config.ts'
import { copyDatabase } from '../../src/nodes/copy-database.ts'
import { openConfigured } from '../../src/nodes/load.ts'
import { type HranaServer, startHranaServer } from '../support/hrana-server.ts'
import { startTestServer, type TestServer, temporaryFolder } from '../support/latchkey.ts'
import { testMasterKey } from '../support/server-kind.ts'

const folder = temporaryFolder()
let database: HranaServer
let server: TestServer
const sideOf = (url: string) => ({
  url,
  open: (create: boolean) =>
    openConfigured(
      loadConfig({ flags: { LATCHKEY_DATABASE_URL: url, LATCHKEY_MASTER_KEY: testMasterKey }, environment: {} }),
      create,
    ),
})

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
