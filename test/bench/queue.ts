// The queue in front of an inference server with few places, beside the same load straight at that server, which serves in the order of
// arrival: how evenly keys share it, what a flood does to others, what is lost at saturation, and what the queue costs when nothing waits.
import { createDispatch } from '../../src/inference/queue/dispatch.ts'
import { configuredUpstream } from '../../src/inference/upstream/targets.ts'
import { installLatchkey, quantile, rounds, spawnServer } from './measure.ts'
import { benchReplicas } from './queue-replicas.ts'
import { addRound, type Figures, type Result } from './report.ts'

const runningMax = 16
/** Until as much waits as will, and the first requests have ended. */
const warmUpMilliseconds = 1_000
/** More would take long and find the same. */
const roundsMax = 3
/** Of the largest load. The runtime sends 256 at once by default. */
const clientsMax = 501

/** A caller: so many requests at a time, each after the one before. */
type Caller = { name: string; weight: number; clients: number }
type Load = {
  name: string
  /** How long it lasts, and how long the server takes for a request. */
  milliseconds: number
  serviceMilliseconds: number
  callers: Caller[]
  figuresOf: (seen: Seen) => Figures
}
type Seen = { callers: { weight: number; waits: number[] }[]; seconds: number; most: number }
type Arm = { name: string; url: string; credentials: Record<string, string> }

const caller = (name: string, weight: number, clients: number): Caller => ({ name, weight, clients })
const loads: Load[] = [
  {
    name: 'equal weights',
    milliseconds: 6_000,
    serviceMilliseconds: 400,
    callers: [caller('a', 1, 150), caller('b', 1, 60), caller('c', 1, 40), caller('d', 1, 20)],
    figuresOf: ({ callers, ...rest }) => ({
      jainIndex: jainIndexOf(sharesOf(callers)),
      ...common({ callers, ...rest }),
    }),
  },
  {
    name: 'weights 1, 2 and 4',
    milliseconds: 5_000,
    serviceMilliseconds: 100,
    callers: [caller('one', 1, 60), caller('two', 2, 60), caller('four', 4, 60)],
    figuresOf: ({ callers, ...rest }) => ({
      offSharePercent: Math.max(...sharesOf(callers).map((share) => 100 * Math.abs(share - 1))),
      ...common({ callers, ...rest }),
    }),
  },
  {
    name: 'one request at a time beside a flood of 500',
    milliseconds: 9_000,
    serviceMilliseconds: 200,
    callers: [caller('flood', 1, 500), caller('calm', 1, 1)],
    figuresOf: ({ callers, ...rest }) => ({
      p99WaitMilliseconds: quantile(callers[1]?.waits ?? [], 0.99),
      ...common({ callers, ...rest }),
    }),
  },
]

export async function benchQueue(note: (text: string) => void): Promise<Result[]> {
  if (Number(process.env.BUN_CONFIG_MAX_HTTP_REQUESTS ?? 256) < clientsMax)
    throw new Error('Set BUN_CONFIG_MAX_HTTP_REQUESTS=65535, as `bun run bench` does')
  const { arms, origin, stop } = await startArms()
  const results: Result[] = []
  for (let round = 0; round < Math.min(rounds, roundsMax); round += 1)
    for (const load of loads)
      for (const arm of round % 2 === 0 ? arms : arms.toReversed()) {
        const figures = load.figuresOf(await drive(arm, load, origin))
        addRound(resultOf(results, load.name, arm.name), figures)
      }
  await stop()
  for (let round = 0; round < rounds; round += 1)
    addRound(resultOf(results, 'nothing waits', 'latchkey'), { microseconds: measureEmpty() })
  return [...results, ...(await benchReplicas(note))]
}

function resultOf(results: Result[], load: string, arm: string): Result {
  const found = results.find((each) => each.load === load && each.arm === arm)
  if (found !== undefined) return found
  const made = { bench: 'queue', load, concurrency: 0, arm, figures: {} }
  results.push(made)
  return made
}

async function startArms(): Promise<{ arms: Arm[]; origin: string; stop: () => Promise<unknown> }> {
  const command = [process.execPath, 'test/bench/scarce-upstream.ts', String(runningMax)]
  const upstream = await spawnServer(command)
  const origin = `http://127.0.0.1:${upstream.port}`
  const { run, serve } = await installLatchkey()
  const credentials: Record<string, string> = {}
  for (const { name, weight } of loads.flatMap(({ callers }) => callers))
    credentials[name] = (await run('keys', 'create', '--name', name, '--queue-weight', String(weight))).key
  const places = ['--max-running', String(runningMax)]
  await run('upstreams', 'add', '--name', 'gpu', '--inference-url', `${origin}/v1`, ...places)
  const served = await serve()
  const arms = [
    { name: 'direct', url: `${origin}/v1/chat/completions`, credentials: {} },
    { name: 'latchkey', url: `${served.baseUrl}/chat/completions`, credentials },
  ]
  return { arms, origin, stop: async () => Promise.all([served.stop(), upstream.stop()]) }
}

/** Keeps all callers busy, and counts what ended after the warm-up. */
async function drive(arm: Arm, { callers, milliseconds, serviceMilliseconds }: Load, origin: string): Promise<Seen> {
  await untilIdle(origin)
  const endAt = performance.now() + warmUpMilliseconds + milliseconds
  let countsFrom = Number.POSITIVE_INFINITY
  const stopping = new AbortController()
  const clients = callers.map((each) => {
    const waits: number[] = []
    const work = async () => {
      while (performance.now() < endAt) {
        const sentAt = performance.now()
        const isDone = await ask(arm, each.name, serviceMilliseconds, stopping.signal)
        const now = performance.now()
        if (isDone && now >= countsFrom && now < endAt) waits.push(Math.max(0, now - sentAt - serviceMilliseconds))
      }
    }
    return { weight: each.weight, waits, ended: Promise.all(Array.from({ length: each.clients }, work)) }
  })
  await Bun.sleep(warmUpMilliseconds)
  countsFrom = performance.now()
  await mostAt(origin)
  await Bun.sleep(milliseconds)
  const [seconds, most] = [(performance.now() - countsFrom) / 1_000, await mostAt(origin)]
  stopping.abort()
  await Promise.all(clients.map(({ ended }) => ended))
  return { callers: clients, seconds, most }
}

/** Whether it was served. One that may not wait comes back when it was asked to. */
async function ask(
  { name, url, credentials }: Arm,
  caller: string,
  milliseconds: number,
  signal: AbortSignal,
): Promise<boolean> {
  const headers = { authorization: `Bearer ${credentials[caller] ?? 'anybody'}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: `takes-${milliseconds}`, max_tokens: 100, messages })
  try {
    const response = await fetch(url, { method: 'POST', headers, body, signal })
    const text = await response.text()
    if (response.status === 200) return true
    if (response.status !== 429) throw new Error(`${name} responded ${response.status}: ${text}`)
    await Promise.race([Bun.sleep(Number(response.headers.get('retry-after')) * 1_000), aborted(signal)])
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return false
}

const messages = [{ role: 'user', content: 'hi '.repeat(100) }]

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

/** The server works off what clients that left have sent before. */
async function untilIdle(origin: string): Promise<void> {
  await mostAt(origin)
  while ((await mostAt(origin)) > 0) await Bun.sleep(100)
}

async function mostAt(origin: string): Promise<number> {
  return Number(await (await fetch(`${origin}/most`)).text())
}

function common({ callers, seconds, most }: Seen): Figures {
  return { perSecond: callers.reduce((sum, { waits }) => sum + waits.length, 0) / seconds, mostRunning: most }
}

/** What each caller got for what its weight should have got it. */
function sharesOf(callers: Seen['callers']): number[] {
  const all = callers.reduce((sum, { waits }) => sum + waits.length, 0)
  const weights = callers.reduce((sum, { weight }) => sum + weight, 0)
  return callers.map(({ weight, waits }) => (waits.length * weights) / (all * weight))
}

/** 1 if all have the same, 1/n if one of n has all (Jain, Chiu and Hawe, DEC TR-301, 1984). */
function jainIndexOf(shares: number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0)
  return sum ** 2 / (shares.length * shares.reduce((total, share) => total + share ** 2, 0))
}

/** A place at a server with room, and giving it back. */
function measureEmpty(): number {
  const upstream = configuredUpstream('http://127.0.0.1:9/v1')
  const dispatch = createDispatch({
    ...{ registry: { upstreams: new Map([[upstream.id, upstream]]), keys: new Map() }, liveNodes: () => 1 },
    budgets: { limitOf: () => undefined, nameOf: () => undefined },
    ...{ random: () => 0, hash: () => 0, monotonic: () => performance.now(), every: () => () => {} },
    onWaited: () => {},
  })
  const asked = {
    ...{
      upstreams: [upstream],
      key: { id: 'key', queueClass: 'normal', queueWeight: 1 } as const,
      counter: 'key',
      budgets: [],
    },
    ...{ cost: 1_000, affinityKey: undefined, isRetry: false, waitMillisecondsMax: 30_000 },
    signal: new AbortController().signal,
  }
  const count = 200_000
  const take = (times: number) => {
    for (let each = 0; each < times; each += 1) {
      const place = dispatch.take(asked)
      if (place instanceof Promise) throw new Error('It waits')
      place.end(900)
    }
  }
  take(count)
  const startedAt = performance.now()
  take(count)
  return ((performance.now() - startedAt) * 1_000) / count
}
