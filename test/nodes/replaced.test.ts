// A node whose database server comes back with a different database stops, and one with an empty database serves nothing.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type HranaServer, startHranaServer } from '../support/hrana-server.ts'
import { startTestServer, type TestServer, temporaryFolder } from '../support/latchkey.ts'
import { urlOf } from '../support/nodes.ts'
import { testMasterKey } from '../support/server-kind.ts'

const folder = temporaryFolder()
const broken: unknown[] = []
let database: HranaServer
let node: TestServer
const start = (url: string) =>
  startTestServer({
    settings: { LATCHKEY_DATABASE_URL: url, LATCHKEY_MASTER_KEY: testMasterKey },
    dependencies: { onBroken: (error) => broken.push(error) },
  })

async function restart(name: string): Promise<void> {
  const port = Number(new URL(database.url).port)
  await database.close()
  database = await startHranaServer({ path: join(folder.path, name), port })
}

beforeAll(async () => {
  database = await startHranaServer({ path: join(folder.path, 'one.db') })
  node = await start(database.url)
})
afterAll(async () => {
  await node.stop()
  await database.close()
  folder.remove()
})

const ask = () => fetch(`${urlOf(node)}/models`)

test('an empty database is refused with 503, and the right one serves again', async () => {
  expect((await ask()).status).toBe(401)
  await restart('empty.db')
  expect((await ask()).status).toBe(503)
  expect(broken).toEqual([])
  await restart('one.db')
  expect((await ask()).status).toBe(401)
})

test('a different installation ends the node', async () => {
  const other = await startHranaServer({ path: join(folder.path, 'other.db') })
  await (await start(other.url)).stop()
  await other.close()
  await restart('other.db')
  expect((await ask()).status).toBeGreaterThanOrEqual(500)
  expect(String(broken)).toContain('a different database')
  await restart('one.db')
  expect((await ask()).status).toBeGreaterThanOrEqual(500)
})
