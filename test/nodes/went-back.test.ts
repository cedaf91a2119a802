// A node that sleeps while its database goes back to an older state, and forward again, serves nothing of what it knew.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { connectToServer } from '../../db/remote/kinds.ts'
import { rowsInFile } from '../support/database-file.ts'
import { type HranaServer, startHranaServer } from '../support/hrana-server.ts'
import { type Row, startTestServer, type TestServer, temporaryFolder } from '../support/latchkey.ts'
import { urlOf } from '../support/nodes.ts'
import { rejectionOf } from '../support/rejection.ts'
import { testMasterKey } from '../support/server-kind.ts'
import { copyDatabase } from '../support/sqld.ts'

const folder = temporaryFolder()
const pathOf = (name: string) => `${folder.path}/${name}.db`
const snapshot = pathOf('snapshot')
let key: Row & { key: string }
let database: HranaServer
let sleeper: TestServer
let broken: unknown[]
let round = 0

async function withDatabase(path: string, use: (url: string) => Promise<unknown>): Promise<void> {
  const { url, close } = await startHranaServer({ path })
  await use(url)
  await close()
}

const startNode = (url: string, onBroken = (_error: unknown) => {}, isFirst = false) =>
  startTestServer({
    settings: { LATCHKEY_DATABASE_URL: url, LATCHKEY_MASTER_KEY: testMasterKey },
    dependencies: { onBroken },
    start: isFirst ? {} : { create: false, prepare: async () => {} },
  })

async function withNode(url: string, use: (node: TestServer) => Promise<unknown>): Promise<void> {
  const node = await startNode(url)
  await use(node)
  await node.stop()
}

/** What a program without lineages records. */
async function changeAsOlderProgram(url: string, name: string): Promise<void> {
  const { client } = await connectToServer({ url, token: undefined, send: (request) => fetch(request) })
  await client.batch(
    [
      { sql: 'update api_keys set disabled = 1 where name = ?', args: [name] },
      `insert into admin_changes (at, actor, operation, kind, target_id)
        select 5, 'local', 'keys.update', 'key', id from api_keys where name = '${name}'`,
    ],
    'write',
  )
  client.close()
}

beforeAll(() =>
  withDatabase(snapshot, async (url) => {
    const node = await startNode(url, () => {}, true)
    await node.admin('keys.create', { name: 'other' })
    key = await node.admin('keys.create', { name: 'target' })
    await node.stop()
  }),
)
beforeEach(async () => {
  round += 1
  broken = []
  const path = pathOf(`first-${round}`)
  await copyDatabase(snapshot, path)
  database = await startHranaServer({ path })
  sleeper = await startNode(database.url, (error) => broken.push(error))
})
afterEach(async () => {
  await sleeper.stop()
  await database.close()
})
afterAll(() => folder.remove())

const statusAtSleeper = async () =>
  (await fetch(`${urlOf(sleeper)}/presets`, { headers: { authorization: `Bearer ${key.key}` } })).status

/** While the node reaches no database, it goes back to the snapshot, and forward again. */
async function sleepWhile(forward: (url: string) => Promise<unknown>): Promise<void> {
  const port = Number(new URL(database.url).port)
  await database.close()
  const path = pathOf(`second-${round}`)
  await copyDatabase(snapshot, path)
  await withDatabase(path, forward)
  database = await startHranaServer({ path, port })
}

const disable = (name: string) => async (node: TestServer) => {
  await node.admin('keys.update', { key: name, disabled: true })
}
const byNode = (change: (node: TestServer) => Promise<unknown>) => (url: string) => withNode(url, change)

test.each([
  {
    held: 'its own change',
    change: () => disable('other')(sleeper),
    returned: 'as many changes',
    forward: byNode(disable('target')),
  },
  {
    held: 'a change of another node',
    change: () => withNode(database.url, disable('other')),
    returned: 'more changes',
    forward: byNode(async (node) => {
      await disable('target')(node)
      await disable('other')(node)
    }),
  },
  {
    held: 'a change of an older program',
    change: () => changeAsOlderProgram(database.url, 'other'),
    returned: 'another change of an older program',
    forward: (url: string) => changeAsOlderProgram(url, 'target'),
  },
])('a node that obeys $held ends when the database comes back with $returned', async ({ change, forward }) => {
  await change()
  expect(await statusAtSleeper()).toBe(200)
  await sleepWhile(forward)
  expect(await statusAtSleeper()).toBeGreaterThanOrEqual(500)
  expect(String(broken)).toContain('gone back to an older state')
})

test('a node serves on when its database comes back as it was, and has another change then', async () => {
  await changeAsOlderProgram(database.url, 'other')
  expect(await statusAtSleeper()).toBe(200)
  const port = Number(new URL(database.url).port)
  await database.close()
  database = await startHranaServer({ path: pathOf(`first-${round}`), port })
  expect(await statusAtSleeper()).toBe(200)
  await changeAsOlderProgram(database.url, 'target')
  expect(await statusAtSleeper()).toBe(401)
  expect(broken).toEqual([])
})

test('a change that a node planned before the database went back is not made', async () => {
  await disable('other')(sleeper)
  const { shared } = sleeper.server.context.database
  if (shared === undefined) throw new Error('The database is on a server')
  const { commitChange } = shared
  shared.commitChange = async (...change) => {
    shared.commitChange = commitChange
    await sleepWhile(byNode(disable('target')))
    return commitChange(...change)
  }
  await rejectionOf(sleeper.admin('keys.create', { name: 'lost' }))
  expect(String(broken)).toContain('gone back to an older state')
  expect(rowsInFile(database.file, "select 1 from api_keys where name = 'lost'")).toEqual([])
})
