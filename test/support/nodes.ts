// Several nodes on one server database, in the test's own process, with an issuer and an upstream that all of them use.

import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { createTestIssuer } from '../../scripts/dev/test-issuer.ts'
import type { Dependencies } from '../../src/server/context.ts'
import { type HranaServer, startHranaServer } from './hrana-server.ts'
import { takeKeyPair } from './key-pairs.ts'
import {
  listenLocally,
  type Row,
  startTestServer,
  type TestServer,
  temporaryFolder,
  upstreamApiKey,
} from './latchkey.ts'
import { until } from './until.ts'

export const masterKey = 'a1'.repeat(32)
/** All nodes are one service to their clients. */
export const baseUrl = 'http://latchkey.example/v1'

export type Nodes = {
  database: HranaServer
  databaseFile: string
  nodes: TestServer[]
  issuerUrl: string
  /** Starts one more node. `settings` are added to those that all have. */
  add: (settings?: Partial<Record<string, string>>, dependencies?: Partial<Dependencies>) => Promise<TestServer>
  stop: () => Promise<void>
}

export async function startNodes(count: number, around?: (url: string) => string): Promise<Nodes> {
  const folder = temporaryFolder()
  const database = await startHranaServer({ path: `${folder.path}/server.db` })
  let issuerUrl = ''
  const issuer = await listenLocally(await createTestIssuer(() => issuerUrl, takeKeyPair))
  issuerUrl = issuer.url
  const upstream = await listenLocally(createEchoUpstream(upstreamApiKey))
  const nodes: TestServer[] = []
  const add: Nodes['add'] = async (settings = {}, dependencies = {}) => {
    const node = await startTestServer({
      upstreamUrl: `${upstream.url}/v1`,
      settings: {
        LATCHKEY_DATABASE_URL: around?.(database.url) ?? database.url,
        LATCHKEY_MASTER_KEY: masterKey,
        LATCHKEY_BASE_URL: baseUrl,
        ...settings,
      },
      dependencies,
      start: nodes.length === 0 ? {} : { create: false, prepare: async () => {} },
    })
    nodes.push(node)
    return node
  }
  for (let index = 0; index < count; index++) await add()
  return {
    database,
    databaseFile: database.file,
    nodes,
    issuerUrl,
    add,
    stop: async () => {
      for (const node of nodes) await node.stop()
      await Promise.all([issuer.listener.drain(), upstream.listener.drain()])
      await database.close()
      folder.remove()
    },
  }
}

/** The address of a node, whatever URL its clients know it by. */
export function urlOf({ server }: TestServer): string {
  return `http://127.0.0.1:${server.address.port}/v1`
}

/** Waits until every node counts all of them. */
export async function untilCounted({ nodes }: Nodes): Promise<void> {
  for (const { server } of nodes)
    await until('every node to be counted', async () => {
      await server.context.follow.fresh()
      return server.context.follow.liveNodes() >= nodes.length
    })
}

export type { Row }
