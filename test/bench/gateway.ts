// What an inference request costs on its way through: CPU time of the serving process at concurrency 32, and the time that it adds at
// concurrency 1, all with the same upstream. Latchkey verifies the credential, looks at the key's state, reads the usage and commits a row
// of the ledger before the answer ends; what it is measured against passes on.
import { concurrency, measureCpu, median, printFigures, printRatio, repeat, rounds } from './measure.ts'
import { type Gateway, startBareProxy, startLatchkey, startNginx, startPortkey, startUpstream } from './proxies.ts'

const requestsPerRound = Number(process.env.BENCH_REQUESTS ?? 2_000)
const streamsPerRound = Number(process.env.BENCH_STREAMS ?? 200)
const timedRequests = Number(process.env.BENCH_TIMED_REQUESTS ?? 1_000)
const timedStreams = Number(process.env.BENCH_TIMED_STREAMS ?? 150)
const warmUps = 12
/** Requests of one turn at concurrency 1: a process that has just slept answers late, whatever it does. */
const inARow = 25
/** Between two events of a stream: as fast as models write, and short. */
const [paced, hurried] = ['paced-4', 'paced-1']

export async function benchGateway(): Promise<void> {
  const upstream = await startUpstream()
  const { withTokens, withKey } = await startLatchkey(upstream.origin)
  const nginx = await startNginx(upstream.origin)
  if (nginx === undefined) console.log('\nnginx is not installed and left out')
  const others = [
    ...(nginx === undefined ? [] : [nginx]),
    await startBareProxy(upstream.origin),
    await startPortkey('Bun', upstream.origin),
    await startPortkey('Node', upstream.origin),
  ]
  const contestants = [withTokens, withKey, ...others]
  await compareCpu('a JSON answer', contestants, requestsPerRound, false)
  await compareCpu('a stream of 50 events', contestants, streamsPerRound, true)
  await compareTimes('p50 latency of a JSON answer', upstream, contestants, timedRequests, askWhole, '0.25')
  await compareTimes('time to the first byte of a stream', upstream, contestants, timedStreams, askFirstByte, '0.50')
  const started = [...others, withTokens, upstream]
  for (const { stop } of started) await stop()
}

async function compareCpu(title: string, contestants: Gateway[], count: number, streams: boolean): Promise<void> {
  const credentials = await credentialsOf(contestants)
  const figures = await measureCpu(contestants, {
    warmUp: warmUps * count,
    count,
    load: (each, requests) => {
      const body = bodyOf(streams, requests > count ? hurried : paced)
      return repeat(requests, async (index) => {
        const text = await (await ask(each, credentials, index, body)).text()
        if (streams ? !text.endsWith('[DONE]\n\n') : !text.endsWith('}')) throw new Error(`${each.name}: ${text}`)
      })
    },
  })
  printFigures(`CPU per request, ${title} at concurrency ${concurrency} (median of ${rounds} rounds)`, figures)
  printRatio(figures, 'latchkey', 'bare Bun proxy', 'at most 1.6')
  printRatio(figures, 'latchkey with an API key', 'bare Bun proxy', 'at most 1.6')
  printRatio(figures, 'Portkey on Bun', 'latchkey', 'at least 2.5')
  printRatio(figures, 'Portkey on Node', 'latchkey', 'at least 7')
}

type Asking = (each: Gateway, credentials: Credentials, index: number) => Promise<number>

/** What each adds to the upstream's own time, one request after the other, the contestants taking turns. */
async function compareTimes(
  title: string,
  upstream: Gateway,
  contestants: Gateway[],
  count: number,
  asking: Asking,
  target: string,
): Promise<void> {
  const all = [upstream, ...contestants]
  const credentials = await credentialsOf(all)
  const times = new Map(all.map(({ name }) => [name, [] as number[]]))
  for (let turn = 0; turn < count; turn += inARow)
    for (const each of all)
      for (let index = turn; index < turn + inARow; index++)
        times.get(each.name)?.push(await asking(each, credentials, index))
  const direct = median(times.get(upstream.name) ?? [])
  console.log(`\nAdded ${title}, to ${direct.toFixed(2)} ms of the upstream (median of ${count})`)
  for (const { name } of contestants) {
    const added = (median(times.get(name) ?? []) - direct).toFixed(2)
    console.log(`  ${name.padEnd(34)} ${added} ms${name.startsWith('latchkey') ? `  (target under ${target})` : ''}`)
  }
}

const askWhole: Asking = async (each, credentials, index) => {
  const startedAt = performance.now()
  await (await ask(each, credentials, index, bodyOf(false, paced))).text()
  return performance.now() - startedAt
}

const askFirstByte: Asking = async (each, credentials, index) => {
  const startedAt = performance.now()
  const reader = (await ask(each, credentials, index, bodyOf(true, hurried))).body?.getReader()
  await reader?.read()
  const time = performance.now() - startedAt
  while ((await reader?.read())?.done === false);
  return time
}

type Credentials = Map<Gateway, string[]>

async function credentialsOf(contestants: Gateway[]): Promise<Credentials> {
  return new Map(await Promise.all(contestants.map(async (each) => [each, await each.credentials()] as const)))
}

async function ask(each: Gateway, credentials: Credentials, index: number, body: string): Promise<Response> {
  const known = credentials.get(each) ?? []
  const headers = {
    ...each.headers,
    authorization: `Bearer ${known[index % known.length]}`,
    'content-type': 'application/json',
    // Or some would compress and others not.
    'accept-encoding': 'identity',
  }
  const response = await fetch(each.url, { method: 'POST', headers, body })
  if (response.status !== 200) throw new Error(`${each.name} answered ${response.status}: ${await response.text()}`)
  return response
}

const conversation = [
  {
    role: 'system',
    content: 'You are a helpful assistant that answers in plain English and keeps it short. '.repeat(6),
  },
  { role: 'user', content: 'Summarize what follows in a few sentences, for somebody who has no time. '.repeat(14) },
]

function bodyOf(stream: boolean, model: string): string {
  const options = stream ? { stream, stream_options: { include_usage: true } } : {}
  return JSON.stringify({ model, messages: conversation, temperature: 0.2, max_tokens: 400, ...options })
}
