// Random admin changes at random nodes against exchanges and inferences at others: nothing is accepted that arrived after
// an acknowledged refusal. LATCHKEY_TEST_CHANGES makes it larger (10000 with ten times as many requests).
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { drawFrom } from '../support/chance.ts'
import { findViolations, type History, type Rate } from '../support/history.ts'
import { audience, mintAt, postExchange, type Row, subject, type TestServer } from '../support/latchkey.ts'
import { type Nodes, startNodes, urlOf } from '../support/nodes.ts'

const changesTotal = Number(process.env.LATCHKEY_TEST_CHANGES ?? 24)
const requestsPerChange = 10
/** Of those, they begin after the change was acknowledged. */
const requestsAfterChange = 6

let cluster: Nodes
const targets: Target[] = []
let subjectToken: string

/** Something that an admin allows and refuses, and a request that depends on it. `admits` is what a refusal leaves. */
type Target = {
  name: string
  admits?: Rate
  change: (node: TestServer, allows: boolean) => Promise<unknown>
  request: (node: TestServer) => Promise<Response>
}

const infer = (node: TestServer, credential: string) =>
  fetch(`${urlOf(node)}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'x' }] }),
  })
const exchange = (node: TestServer, policyId: string) =>
  postExchange(urlOf(node), { federation_policy_id: policyId, subject_token: subjectToken })

/** Keys and policies that are disabled, limited in models, budget and rate, paused and deleted, and an organization that loses its entitlement. */
async function addTargets(node: TestServer, index: number): Promise<void> {
  const organization = `organization-${index}`
  await node.admin('organizations.create', { name: organization })
  const key = await node.admin<Row & { key: string }>('keys.create', { organization, name: 'key' })
  const limited = await node.admin<Row & { key: string }>('keys.create', { organization, name: 'limited' })
  await node.admin('issuers.add', { organization, name: 'idp', issuer_url: cluster.issuerUrl })
  const named = { organization, issuer: 'idp', key: 'limited', audience, subject }
  const paused = await node.admin('policies.create', { ...named, name: 'paused' })
  const entitled = `entitled-${index}`
  await node.admin('organizations.create', { name: entitled })
  await node.admin('keys.create', { organization: entitled, name: 'limited' })
  await node.admin('issuers.add', { organization: entitled, name: 'idp', issuer_url: cluster.issuerUrl })
  const policy = await node.admin('policies.create', { ...named, organization: entitled, name: 'policy' })
  targets.push(
    {
      name: `key ${index}`,
      change: (at, allows) => at.admin('keys.update', { organization, key: 'key', disabled: !allows }),
      request: (at) => infer(at, key.key),
    },
    {
      name: `models ${index}`,
      change: (at, allows) =>
        at.admin('keys.update', { organization, key: 'limited', allowed_models: [allows ? 'echo' : 'other'] }),
      request: (at) => infer(at, limited.key),
    },
    {
      name: `policy ${index}`,
      change: (at, allows) =>
        at.admin(allows ? 'policies.resume' : 'policies.pause', { organization, policy: 'paused' }),
      request: (at) => exchange(at, paused.id),
    },
    {
      name: `entitlement ${index}`,
      change: (at, allows) =>
        at.admin('organizations.plan', { organization: entitled, plan: allows ? 'enterprise' : 'free' }),
      request: (at) => exchange(at, policy.id),
    },
    await budgetTarget(node, organization, index),
    await rateTarget(node, organization, index),
    await deletedKeyTarget(node, organization, index),
    await deletedPolicyTarget(node, named, index),
  )
}

/** A key that has spent something: a smaller limit refuses it. */
async function budgetTarget(node: TestServer, organization: string, index: number): Promise<Target> {
  await node.admin('prices.set', { prices: [{ model: 'echo', prompt: 1, completion: 1 }] })
  const { key } = await node.admin<Row & { key: string }>('keys.create', { organization, name: 'budget' })
  const spent = await infer(node, key)
  await spent.arrayBuffer()
  return {
    name: `budget ${index}`,
    change: (at, allows) => at.admin('keys.update', { organization, key: 'budget', limit: allows ? null : 1e-9 }),
    request: (at) => infer(at, key),
  }
}

/** A key with a rate that nobody reaches: the smallest one lets one request pass at each node, and less than one a minute. */
async function rateTarget(node: TestServer, organization: string, index: number): Promise<Target> {
  const rate = (allows: boolean) => ({ requests_per_minute: allows ? 60_000 : 1 })
  const { key } = await node.admin<Row & { key: string }>('keys.create', { organization, name: 'rate', ...rate(true) })
  return {
    name: `rate ${index}`,
    admits: { atOnce: 1, perMinute: 1 },
    change: (at, allows) => at.admin('keys.update', { organization, key: 'rate', ...rate(allows) }),
    request: (at) => infer(at, key),
  }
}

/** A key that is deleted and made again: requests use the newest one. */
async function deletedKeyTarget(node: TestServer, organization: string, index: number): Promise<Target> {
  const create = (at: TestServer) => at.admin<Row & { key: string }>('keys.create', { organization, name: 'deleted' })
  let { key } = await create(node)
  return {
    name: `deleted key ${index}`,
    change: async (at, allows) => {
      if (allows) key = (await create(at)).key
      else await at.admin('keys.delete', { organization, key: 'deleted' })
    },
    request: (at) => infer(at, key),
  }
}

/** A policy that is deleted and made again: requests use the newest one. */
async function deletedPolicyTarget(node: TestServer, named: { organization: string }, index: number): Promise<Target> {
  const create = (at: TestServer) => at.admin('policies.create', { ...named, name: 'deleted' })
  let { id } = await create(node)
  return {
    name: `deleted policy ${index}`,
    change: async (at, allows) => {
      if (allows) id = (await create(at)).id
      else await at.admin('policies.delete', { organization: named.organization, policy: 'deleted' })
    },
    request: (at) => exchange(at, id),
  }
}

/** Requests that a change waits for: so many in all, and some of them that began after a time. */
type Awaited = { since: number; missing: number; total: number; resolve: () => void }
type Recording = {
  random: () => number
  isOf?: (target: Target) => boolean
  changingNodes?: number
  afterChange?: number
}

/**
 * Changes each target so many times, an even number, each time at a random node, while requests for it go to all nodes. Between two
 * changes some requests begin and end, so that only one outcome is right for them.
 */
async function record(
  times: number,
  { random, isOf = () => true, changingNodes = cluster.nodes.length, afterChange = requestsAfterChange }: Recording,
): Promise<History> {
  const history: History = { changes: [], requests: [] }
  const nodeAt = (below: number) => Math.floor(random() * below)
  const at = (node: number) => cluster.nodes[node] as TestServer

  async function exercise({ name, admits, change, request }: Target): Promise<void> {
    let awaited: Awaited | undefined
    let ended = 0
    let isOver = false
    const send = async () => {
      while (!isOver) {
        const node = nodeAt(cluster.nodes.length)
        const startedAt = performance.now()
        const response = await request(at(node))
        await response.arrayBuffer()
        if (response.status >= 500) throw new Error(`${name}: ${response.status}`)
        history.requests.push({ target: name, accepted: response.ok, startedAt, endedAt: performance.now(), node })
        ended += 1
        if (awaited === undefined) continue
        if (startedAt > awaited.since) awaited.missing -= 1
        if (awaited.missing <= 0 && ended >= awaited.total) awaited.resolve()
      }
    }
    const make = async () => {
      for (let count = 0; count < times; count++) {
        const node = nodeAt(changingNodes)
        const startedAt = performance.now()
        const allows = count % 2 === 1
        await change(at(node), allows)
        const endedAt = performance.now()
        const left = allows || admits === undefined ? {} : { admits }
        history.changes.push({ target: name, allows, ...left, startedAt, endedAt, node })
        await new Promise<void>((resolve) => {
          awaited = { since: endedAt, missing: afterChange, total: requestsPerChange * (count + 1), resolve }
        })
      }
      isOver = true
    }
    await Promise.all([make(), send(), send()])
  }

  await Promise.all(targets.filter(isOf).map(exercise))
  return history
}

beforeAll(async () => {
  cluster = await startNodes(3)
  subjectToken = await mintAt(cluster.issuerUrl)
  await addTargets(cluster.nodes[0] as TestServer, 0)
})
afterAll(() => cluster.stop())

test('nothing is accepted or refused against a change that was acknowledged before', async () => {
  const history = await record(2 * Math.ceil(changesTotal / targets.length / 2), { random: drawFrom(1) })
  expect(history.changes.length).toBeGreaterThanOrEqual(changesTotal)
  expect(history.requests.length).toBeGreaterThanOrEqual(changesTotal * requestsPerChange)
  const outcomes = new Set(history.requests.map(({ target, accepted }) => `${target} ${accepted}`))
  expect(outcomes.size).toBe(2 * targets.length)
  expect(findViolations(history)).toEqual([])
}, 3_600_000)

describe('the checker finds', () => {
  type Fresh = () => Promise<void> | undefined
  const sabotages: [what: string, sabotage: (fresh: Fresh) => Fresh, recording?: Partial<Recording>][] = [
    ['a refresh that is skipped', () => () => undefined],
    [
      'a refresh that is used again',
      (fresh) => {
        let last = { at: Number.NEGATIVE_INFINITY, refresh: undefined as Promise<void> | undefined }
        return () => {
          if (performance.now() - last.at > 400) last = { at: performance.now(), refresh: fresh() }
          return last.refresh
        }
      },
    ],
    [
      'a rate limit that is kept',
      () => () => undefined,
      { isOf: ({ admits }) => admits !== undefined, afterChange: 30 },
    ],
  ]
  for (const [what, sabotage, recording] of sabotages)
    test(what, async () => {
      const { follow } = (cluster.nodes[2] as TestServer).server.context
      const { fresh } = follow
      follow.fresh = sabotage(fresh)
      const history = await record(2, { random: drawFrom(2), changingNodes: 2, ...recording })
      const violations = findViolations(history)
      follow.fresh = fresh
      expect(new Set(violations.map(({ request }) => request.node))).toEqual(new Set([2]))
    }, 60_000)
})
