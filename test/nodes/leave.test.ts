// A node that is going to stop serves on for a moment, and proxies find out.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { leave } from '../../src/nodes/leave.ts'
import { type HranaServer, startHranaServer } from '../support/hrana-server.ts'
import { type Row, startTestServer, type TestServer, temporaryFolder } from '../support/latchkey.ts'
import { testMasterKey } from '../support/server-kind.ts'
import { until } from '../support/until.ts'

const folder = temporaryFolder()
let database: HranaServer
let server: TestServer
const settings = () => ({ LATCHKEY_DATABASE_URL: database.url, LATCHKEY_MASTER_KEY: testMasterKey })

beforeAll(async () => {
  database = await startHranaServer({ path: join(folder.path, 'server.db') })
  server = await startTestServer({ settings: settings() })
})
afterAll(async () => {
  await server.stop()
  await database.close()
  folder.remove()
})

test('a node that leaves is not ready, serves on, and closes the connection of each response', async () => {
  const ask = async (path: string) => {
    const { status, headers } = await fetch(server.server.baseUrl + path)
    return [status, headers.get('connection')]
  }
  expect(await ask('/oauth/jwks')).toEqual([200, null])
  await leave(server.server.context, 1)
  expect(await ask('/oauth/jwks')).toEqual([200, 'close'])
  expect(await ask('/../readyz')).toEqual([503, 'close'])
})

test('the only node leaves at once', async () => {
  const calls: string[] = []
  const readiness = { beginStop: () => void calls.push('not ready') }
  await leave({ follow: { liveNodes: () => 1 }, readiness }, 60_000)
  expect(calls).toEqual(['not ready'])
})

test('one of several leaves when its time is over, and is not ready meanwhile', async () => {
  const calls: string[] = []
  const readiness = { beginStop: () => void calls.push('not ready') }
  const startedAt = performance.now()
  const leaving = leave({ follow: { liveNodes: () => 2 }, readiness }, 60)
  expect(calls).toEqual(['not ready'])
  await leaving
  // A timer may end a fraction of a millisecond early.
  expect(performance.now() - startedAt).toBeGreaterThan(55)
})

test('a request gets its response from a node that leaves and stops, or no connection', async () => {
  const { key } = await server.admin<Row & { key: string }>('keys.create', { name: 'key' })
  const start = { create: false, prepare: async () => {} }
  const leaving = await startTestServer({ settings: settings(), start })
  const statuses: (number | undefined)[] = []
  let isStopped = false
  const send = async () => {
    while (!isStopped) {
      const headers = { authorization: `Bearer ${key}` }
      const asked = fetch(`${leaving.server.baseUrl}/key`, { headers })
      statuses.push(
        await asked.then(
          ({ status }) => status,
          () => undefined,
        ),
      )
    }
  }
  await leave(leaving.server.context, 1)
  const sending = [send(), send(), send(), send()]
  await until('responses', () => statuses.length > 20)
  expect(new Set(statuses)).toEqual(new Set([200]))
  await leaving.stop()
  isStopped = true
  await Promise.all(sending)
  expect(new Set(statuses)).toEqual(new Set([200, undefined]))
})
