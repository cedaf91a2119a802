// How far requests at the same time exceed a budget, and how many requests a rate admits, on one node and on several: also while a node
// joins, one stops and one is killed.
import type { Contestant } from './measure.ts'
import { rounds } from './measure.ts'
import { type NodeArm, requestCost } from './node-arms.ts'
import { addRound, type Figures, type Result } from './report.ts'

const budgetRequests = 200
const budgetConcurrency = 64
const perMinutes = [20, 60, 600]
const keysForEach = 3
const rateSeconds = Number(process.env.BENCH_RATE_SECONDS ?? 60)
/** Below, the first and the last request of a minute at each node weigh more than a twentieth. */
const perMinuteMeasuredLater = 60
/** At one node, until the first is refused. */
const atOnce = 8

const body = JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: 'Summarize this.' }] })

/** Sends an inference request and returns its status. */
export async function infer(listening: string, credential: string): Promise<number> {
  const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
  const response = await fetch(`http://${listening}/v1/chat/completions`, { method: 'POST', headers, body })
  await response.arrayBuffer()
  return response.status
}

export async function createKey(
  { nodes, managementKey }: NodeArm,
  limits: object,
): Promise<{ name: string; key: string }> {
  const headers = { authorization: `Bearer ${managementKey}`, 'content-type': 'application/json' }
  const name = `limited-${crypto.randomUUID()}`
  const named = JSON.stringify({ name, ...limits })
  const response = await fetch(`http://${nodes[0]?.listening}/v1/keys`, { method: 'POST', headers, body: named })
  if (!response.ok) throw new Error(await response.text())
  const { key } = (await response.json()) as { key: string }
  return { name, key }
}

/** Requests that are admitted beyond a budget. */
export async function benchBudgets(arms: NodeArm[]): Promise<Result[]> {
  const { add, results } = createNodeResults()
  for (let round = 0; round < rounds; round++)
    for (const arm of round % 2 === 0 ? arms : arms.toReversed())
      add(`budget of ${budgetRequests} requests`, arm, { overshoot: await exceedBudget(arm) }, budgetConcurrency)
  return results()
}

async function exceedBudget(arm: NodeArm): Promise<number> {
  const { key } = await createKey(arm, { limit: budgetRequests * requestCost })
  let served = 0
  let isSpent = false
  const send = async (_: unknown, place: number) => {
    for (let index = place; !isSpent; index += budgetConcurrency) {
      const status = await infer(arm.nodes[index % arm.nodes.length]?.listening ?? '', key)
      if (status === 200) served += 1
      else if (status === 402) isSpent = true
      else throw new Error(`A request on a budget got ${status}`)
    }
  }
  await Promise.all(Array.from({ length: budgetConcurrency }, send))
  return served - budgetRequests
}

/** What rates admit, in percent of the limit: at once, then each minute while every node gets three times its part, and in all. */
export async function benchRates(steady: NodeArm[], changing: NodeArm): Promise<Result[]> {
  const { add, results } = createNodeResults()
  const each = perMinutes.flatMap((perMinute) => Array.from({ length: keysForEach }, () => perMinute))
  const measure = (arm: NodeArm, what: string) =>
    Promise.all(
      each.map(async (perMinute) => {
        const { first, later, total } = await admit(arm, perMinute)
        if (what === '') add(`${perMinute} a minute, at once`, arm, { admittedPercent: first })
        if (perMinute >= perMinuteMeasuredLater) add(`${perMinute} a minute${what}`, arm, { admittedPercent: later })
        else add(`${perMinute} a minute from the start${what}`, arm, { admittedPercent: total })
      }),
    )
  await Promise.all([...steady, changing].map((arm) => measure(arm, '')))
  const admitted = measure(changing, ' while nodes change')
  await Bun.sleep(rateSeconds * 250)
  changing.nodes.push(await changing.addNode())
  await Bun.sleep(rateSeconds * 250)
  await changing.nodes.pop()?.stop()
  await Bun.sleep(rateSeconds * 250)
  await changing.nodes.pop()?.stop('SIGKILL')
  await admitted
  return results()
}

async function admit(arm: NodeArm, perMinute: number): Promise<{ first: number; later: number; total: number }> {
  const { key } = await createKey(arm, { requests_per_minute: perMinute })
  const startedAt = performance.now()
  const emptied = await Promise.all(arm.nodes.map(({ listening }) => empty(listening, key)))
  const firstMinutes = (performance.now() - startedAt) / 60_000
  const first = emptied.reduce((sum, count) => sum + count, 0)
  let later = 0
  const sending: Promise<void>[] = []
  const end = performance.now() + rateSeconds * 1_000
  for (let index = 0; performance.now() < end; index++) {
    const { listening } = arm.nodes[index % arm.nodes.length] ?? { listening: '' }
    const sent = infer(listening, key).then(
      (status) => {
        if (status === 200) later += 1
      },
      // The node was killed.
      () => {},
    )
    sending.push(sent)
    await Bun.sleep(60_000 / perMinute / 3)
  }
  await Promise.all(sending)
  const set = (minutes: number) => (perMinute * minutes) / 100
  const laterMinutes = rateSeconds / 60
  const total = (first + later) / set(1 + firstMinutes + laterMinutes)
  return { first: first / set(1 + firstMinutes), later: later / set(laterMinutes), total }
}

/** Sends until a request is refused. Returns how many were not. */
async function empty(listening: string, key: string): Promise<number> {
  let admitted = 0
  for (;;) {
    const statuses = await Promise.all(Array.from({ length: atOnce }, () => infer(listening, key)))
    admitted += statuses.filter((status) => status === 200).length
    if (statuses.includes(429)) return admitted
  }
}

/** Collects figures by load and arm. */
export function createNodeResults(bench = 'nodes') {
  const found = new Map<string, Result>()
  const add = (load: string, { name: arm }: Pick<Contestant, 'name'>, figures: Figures, concurrency = 0): void => {
    const result = found.get(`${load} ${arm}`) ?? { bench, load, concurrency, arm, figures: {} }
    found.set(`${load} ${arm}`, result)
    addRound(result, figures)
  }
  const order = (one: Result, other: Result) => (one.arm < other.arm ? -1 : 1)
  return { add, results: () => [...found.values()].toSorted(order) }
}
