// What the bench of nodes loads: one Latchkey on a database file, and one to four nodes on a database server. The server is the stand-in
// of the tests, or the program that BENCH_SQLD names. With LATCHKEY_TEST_DATABASE=rqlite it is an rqlite of one node: the stand-in, or in
// front of the program that LATCHKEY_TEST_RQLITE names.
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { audience, subject } from '../support/latchkey.ts'
import { testMasterKey } from '../support/server-kind.ts'
import { benchFolder, type Contestant, cpuMicroseconds, installLatchkey, type Served, spawnServer } from './measure.ts'
import type { Figures } from './report.ts'

export type NodeArm = Contestant & {
  nodes: Served[]
  databaseUrl: string
  policyId: string
  apiKey: string
  keyId: string
  managementKey: string
  addNode: () => Promise<Served>
  /** Adds so much time to each request to the database server. */
  delayDatabase: (milliseconds: number) => Promise<void>
  /** Begins to count; what it returns gives the figures of so many requests. */
  count: () => Promise<(done: number) => Promise<Figures>>
}

type DatabaseServer = { pid: number; url: string; send: (message: object) => void; stop: () => Promise<unknown> }

export const isStandIn = process.env.BENCH_SQLD === undefined
/** In US dollars for each million tokens; a response of the upstream has 599. */
export const requestCost = 599 / 1_000_000

/** With no nodes, a database file and one process. */
export async function startArm(
  nodesTotal: number,
  issuerUrl: string,
  upstreamOrigin: string,
  kind = process.env.LATCHKEY_TEST_DATABASE,
): Promise<NodeArm> {
  const database = nodesTotal === 0 ? undefined : await startDatabase(kind)
  const installed = await installLatchkey({
    LATCHKEY_UPSTREAM_URL: `${upstreamOrigin}/v1`,
    LATCHKEY_UPSTREAM_API_KEY: 'upstream-secret',
    LATCHKEY_METRICS_LISTEN: '127.0.0.1:0',
    LATCHKEY_BASE_URL: 'http://latchkey.example/v1',
    ...(database && { LATCHKEY_DATABASE_URL: database.url, LATCHKEY_MASTER_KEY: testMasterKey }),
  })
  const { run } = installed
  const { id: keyId, key: apiKey } = await run('keys', 'create', '--name', 'key')
  const { key: managementKey } = await run('keys', 'create', '--name', 'admin', '--management')
  await run('prices', 'set', 'bench', '--prompt', '1', '--completion', '1')
  await run('issuers', 'add', '--name', 'idp', '--issuer-url', issuerUrl)
  const matching = ['--audience', audience, '--subject', subject]
  const policy = await run('policies', 'create', '--name', 'bench', '--issuer', 'idp', '--key', 'key', ...matching)
  const nodes: Served[] = []
  for (let count = 0; count < Math.max(1, nodesTotal); count++) nodes.push(await installed.serve())
  const [first = 0, ...others] = nodes.map(({ pid }) => pid)
  return {
    name: nodesTotal === 0 ? 'latchkey on a file' : `latchkey, ${nodesTotal} node${nodesTotal === 1 ? '' : 's'}`,
    pid: first,
    others,
    nodes,
    databaseUrl: database?.url ?? '',
    policyId: policy.id,
    apiKey,
    keyId,
    managementKey,
    addNode: installed.serve,
    delayDatabase: async (delayMilliseconds) => {
      if (!isStandIn || database === undefined) return
      database.send({ delayMilliseconds })
      await Bun.sleep(20)
    },
    count: () => countDatabaseWork(nodes, database),
    stop: async () => {
      await Promise.all(nodes.map((node) => node.stop()))
      await database?.stop()
    },
  }
}

async function startDatabase(kind: string | undefined): Promise<DatabaseServer> {
  const port = await freePort()
  const folder = benchFolder()
  const { BENCH_SQLD: program } = process.env
  const url = `${kind === 'rqlite' ? 'rqlite' : 'http'}://127.0.0.1:${port}`
  const command =
    program === undefined
      ? [process.execPath, 'test/support/hrana-server.ts', join(folder, 'server.db'), String(port)]
      : [program, '--db-path', join(folder, 'sqld'), '--http-listen-addr', `127.0.0.1:${port}`]
  const env = kind === undefined ? {} : { LATCHKEY_TEST_DATABASE: kind }
  const server = await spawnServer(command, { port, env, takesMessages: isStandIn })
  return { ...server, url }
}

async function countDatabaseWork(nodes: Served[], database: DatabaseServer | undefined) {
  const cpu = () => (database === undefined ? 0 : cpuMicroseconds(database.pid))
  const before = await readAll(nodes)
  const cpuBefore = cpu()
  return async (done: number): Promise<Figures> => {
    const used = cpu() - cpuBefore
    const after = await readAll(nodes)
    const [refreshes = 0, commits = 0, rows = 0] = after.map((value, index) => value - (before[index] ?? 0))
    return {
      refreshesPerRequest: refreshes / done,
      commitsPerRequest: commits / done,
      rowsPerCommit: rows / commits,
      ...(database && { databaseCpuMicroseconds: used / done }),
    }
  }
}

const counted = ['look_duration_seconds_count', 'commit_duration_seconds_count', 'commit_rows_sum']

/** The sums over all nodes, in the order of `counted`. */
async function readAll(nodes: Served[]): Promise<number[]> {
  const texts = await Promise.all(nodes.map(async ({ metrics }) => (await fetch(metrics ?? '')).text()))
  return counted.map((name) =>
    texts.reduce((sum, text) => sum + Number(new RegExp(`^latchkey_${name} (\\S+)$`, 'm').exec(text)?.[1] ?? 0), 0),
  )
}
