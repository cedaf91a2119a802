// The order of lists: the same on all nodes, whichever of them made a change and whenever they read it, so that the pages of a list can come
// from different nodes.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { audience, type Row, subject, type TestServer } from '../support/latchkey.ts'
import { type Nodes, startNodes } from '../support/nodes.ts'

let cluster: Nodes
let nodes: TestServer[]
beforeAll(async () => {
  cluster = await startNodes(2)
  for (const [index, prefix] of ['one', 'two'].entries())
    await cluster.nodes[index]?.admin('config.apply', { document: documentOf(prefix) })
  // It reads everything at once, the others each change.
  await cluster.add()
  nodes = cluster.nodes
})
afterAll(() => cluster.stop())

const countPerDocument = 8

function documentOf(owner: string) {
  const named = <Fields>(fields: (name: string, index: number) => Fields) =>
    Array.from({ length: countPerDocument }, (_, index) => ({
      name: `${owner}-${index}`,
      ...fields(`${owner}-${index}`, index),
    }))
  return {
    latchkey: 1,
    owner,
    issuers: named((name) => ({ issuer_url: `https://${name}.example` })),
    keys: named(() => ({})),
    policies: named((name) => ({ issuer: name, key: name, audience, subject })),
    upstreams: named((name) => ({ base_url: `https://${name}.example/v1`, models: [name] })),
    budgets: named((name) => ({ applies_to: { keys: [name] }, windows: [{ per: 'day', requests: 10 }] })),
  }
}

const lists = ['issuers.list', 'keys.list', 'policies.list', 'upstreams.list', 'budgets.list'] as const
const orderAt = async (node: TestServer | undefined, list: (typeof lists)[number]) =>
  (await node?.admin<{ data: Row[] }>(list, {}))?.data.map(({ name }) => String(name)).filter(isOurs) ?? []
const isOurs = (name: string) => /^(one|two)-\d$/.test(name)
const documentOrder = ['one', 'two'].flatMap((owner) =>
  Array.from({ length: countPerDocument }, (_, index) => `${owner}-${index}`),
)

test.each(lists)('%s has the order in which rows were created, on all nodes', async (list) => {
  const orders = await Promise.all(nodes.map((node) => orderAt(node, list)))
  expect(orders).toEqual(nodes.map(() => documentOrder))
})

test.each(['issuers.list', 'keys.list', 'policies.list'] as const)(
  'pages of %s that come from one node after the other have each row once',
  async (list) => {
    const pages: string[] = []
    let after: string | undefined = ''
    for (let page = 0; after !== undefined; page++) {
      const node = nodes[page % nodes.length]
      if (node === undefined) throw new Error('There are three nodes')
      const { data, next }: { data: Row[]; next?: string } = await node.admin(list, { after, limit: 3 })
      pages.push(...data.map(({ name }) => String(name)).filter(isOurs))
      after = next
    }
    expect(pages).toEqual(documentOrder)
  },
)
