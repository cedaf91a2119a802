// What budgets cost and how exactly they hold: requests beyond a budget of 200 with 64 clients, on one node and on three, beside the limit of
// a key, which holds nothing; CPU time of a request without budgets, with one and with ten that are far from their limits; and the memory of a
// hundred thousand values of one budget.
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from '../support/latchkey.ts'
import { drive, orderOf } from './contest.ts'
import { askWhole } from './gateway.ts'
import { fill, measureStart } from './growth.ts'
import { benchFolder, cpuMicroseconds, installLatchkey, median, quantile, rounds } from './measure.ts'
import { type NodeArm, requestCost, startArm } from './node-arms.ts'
import { createKey, createNodeResults, infer } from './node-limits.ts'
import { type Gateway, startUpstream } from './proxies.ts'
import type { Result } from './report.ts'

const budgetRequests = 200
const clients = 64
const cpuClients = 32
const cpuTurns = Number(process.env.BENCH_BUDGET_TURNS ?? 60)
const loadMilliseconds = 250
const warmUpMilliseconds = Number(process.env.BENCH_WARM_UP ?? 8_000)
/** Each round of the first part takes about five seconds on three nodes. */
const overshootRoundsMax = 5
const values = 100_000
/** Instead of all of them, e.g. `BENCH_PARTS=cpu`. */
const parts = process.env.BENCH_PARTS?.split(',')
const isWanted = (part: string) => parts?.includes(part) ?? true
const memoryRoundsMax = 3

export async function benchBudgetObjects(note: (text: string) => void): Promise<Result[]> {
  const upstream = await startUpstream()
  const results = [
    ...(isWanted('overshoot') ? await measureOvershoot(upstream.origin) : []),
    ...(isWanted('cpu') ? await measureCpu(upstream.origin, note) : []),
    ...(isWanted('memory') ? await measureMemory() : []),
  ]
  await upstream.stop()
  return results
}

const holds = ['limit of a key', 'budget, hold expected', 'budget, hold worst'] as const

async function measureOvershoot(origin: string): Promise<Result[]> {
  const { add, results } = createNodeResults('budgets')
  const arms = [await startArm(0, 'http://127.0.0.1:9', origin), await startArm(3, 'http://127.0.0.1:9', origin)]
  for (let round = 0; round < Math.min(rounds, overshootRoundsMax); round++)
    for (const arm of round % 2 === 0 ? arms : arms.toReversed())
      for (const hold of holds)
        add(`${hold} of ${budgetRequests} requests`, arm, { overshoot: await exceed(arm, hold) }, clients)
  for (const { stop } of arms) await stop()
  return results()
}

/** How many requests were served beyond the budget, which is in dollars: what a request costs is known at its end. */
async function exceed(arm: NodeArm, hold: (typeof holds)[number]): Promise<number> {
  const usd = budgetRequests * requestCost
  const isLimit = hold === 'limit of a key'
  const { name, key } = await createKey(arm, isLimit ? { limit: usd } : {})
  if (!isLimit)
    await post(arm, '/budgets', {
      name,
      applies_to: { keys: [name] },
      windows: [{ per: 'month', usd }],
      hold: hold.split(' ').at(-1),
    })
  let served = 0
  let isSpent = false
  const send = async (_: unknown, place: number) => {
    for (let index = place; !isSpent; index += clients) {
      const status = await infer(arm.nodes[index % arm.nodes.length]?.listening ?? '', key)
      if (status === 200) served += 1
      else if (status === 402) isSpent = true
      else if (status !== 429) throw new Error(`A request on a budget got ${status}`)
    }
  }
  await Promise.all(Array.from({ length: clients }, send))
  return Math.max(0, served - budgetRequests)
}

async function post({ nodes, managementKey }: NodeArm, path: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${managementKey}`, 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body: JSON.stringify(body) }
  const response = await fetch(`http://${nodes[0]?.listening}/v1${path}`, init)
  if (!response.ok) throw new Error(await response.text())
}

const budgetCounts = [0, 1, 10]
const nameOf = (count: number) => `latchkey with ${count === 0 ? 'no' : count} budget${count === 1 ? '' : 's'}`

/**
 * One server with a key for each number of budgets, loaded in short turns: two processes of the same program differ by more than budgets cost,
 * and so does one process after its budgets have changed. Each turn loads each key once, in an order that changes.
 */
async function measureCpu(origin: string, note: (text: string) => void): Promise<Result[]> {
  const served = await serveWithBudgets(origin)
  const loads = budgetCounts.map((count) => ({ count, key: served.keys.get(count) ?? '', figures: [] as number[] }))
  for (const { key } of loads) await load(served, key, warmUpMilliseconds / budgetCounts.length)
  for (let turn = 0; turn < cpuTurns; turn++)
    for (const { key, figures } of orderOf(loads, turn)) figures.push(await load(served, key, loadMilliseconds))
  await served.stop()
  const [none = [], ...others] = loads.map(({ figures }) => figures)
  for (const [index, figures] of others.entries()) {
    const [low, high] = intervalOf(figures.map((figure, turn) => figure / (none[turn] ?? Number.NaN)))
    note(`${nameOf(budgetCounts[index + 1] ?? 0)}: CPU ${low.toFixed(3)} to ${high.toFixed(3)} of none (95 %)`)
  }
  return loads.map(({ count, figures }) => ({
    ...{ bench: 'budgets', load: 'JSON', concurrency: cpuClients, arm: nameOf(count) },
    figures: { cpuMicroseconds: figures },
  }))
}

type ServedBudgets = Gateway & { keys: ReadonlyMap<number, string> }

/** Sends requests for so long. Returns the CPU time of each, in microseconds. */
async function load(served: ServedBudgets, key: string, milliseconds: number): Promise<number> {
  const before = cpuMicroseconds(served.pid)
  const cell = { load: 'JSON', concurrency: cpuClients, milliseconds }
  const { latencies } = await drive(served, cell, () => askWhole(served, key))
  return (cpuMicroseconds(served.pid) - before) / latencies.length
}

async function serveWithBudgets(origin: string): Promise<ServedBudgets> {
  const settings = { LATCHKEY_UPSTREAM_URL: `${origin}/v1`, LATCHKEY_UPSTREAM_API_KEY: 'upstream-secret' }
  const { folder, run, serve } = await installLatchkey(settings)
  await run('prices', 'set', 'bench', '--prompt', '1', '--completion', '1')
  const keys = new Map<number, string>()
  for (const count of budgetCounts) {
    const name = `key-${count}`
    keys.set(count, (await run('keys', 'create', '--name', name)).key)
    const scope = join(folder, `${name}.json`)
    writeFileSync(scope, JSON.stringify({ keys: [name] }))
    for (let index = 0; index < count; index++) {
      const each = index % 2 === 0 ? [] : ['--each', 'key']
      const windows = ['--windows', 'month=1000000usd', '--applies-to', scope]
      await run('budgets', 'create', '--name', `${name}-${index}`, ...windows, ...each)
    }
  }
  const { baseUrl, pid, stop } = await serve()
  const common = {
    url: `${baseUrl}/chat/completions`,
    headers: {},
    credentials: async () => [...keys.values()],
    pid,
    stop,
  }
  return { ...common, name: 'latchkey', keys }
}

const resamples = 2_000

/** Where the median is, with a confidence of 95 percent: the bootstrap, with a generator that always begins the same. */
function intervalOf(values: number[]): [low: number, high: number] {
  let state = 1
  const random = () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
  const medians = Array.from({ length: resamples }, () =>
    median(values.map(() => values[Math.floor(random() * values.length)] ?? Number.NaN)),
  )
  return [quantile(medians, 0.025), quantile(medians, 0.975)]
}

/** Two installations with the same totals, of which one has a budget that counts them. */
async function measureMemory(): Promise<Result[]> {
  const { add, results } = createNodeResults('budgets')
  const { folder, run } = await installLatchkey({ LATCHKEY_UPSTREAM_URL: 'http://127.0.0.1:9/v1' })
  await run('keys', 'create', '--name', 'key')
  await fill(folder, { hourTotals: values })
  const counting = benchFolder()
  cpSync(folder, counting, { recursive: true })
  const windows = ['--each', 'attribution', '--windows', 'day=5usd', 'month=20usd']
  const made = await runCommand(['budgets', 'create', '--name', 'each', ...windows], { cwd: counting, env: {} })
  if (made.code !== 0) throw new Error(made.stderr)
  const arms = [
    ['no budget', folder],
    [`${values} values`, counting],
  ] as const
  for (let round = 0; round < Math.min(rounds, memoryRoundsMax); round++)
    for (const [name, installed] of round % 2 === 0 ? arms : arms.toReversed())
      add('start', { name }, await measureStart(installed))
  return results()
}
