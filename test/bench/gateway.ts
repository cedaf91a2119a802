// What an inference request costs on its way through: CPU time of the serving process and the time that it adds, all with the same upstream.
// Latchkey verifies the credential, looks up the state of the key, reads the usage and commits a row of the ledger before the answer ends. The
// bare guard does the same without limits and ledger; the others pass on.
import { type Cell, contest } from './contest.ts'
import { concurrencies } from './measure.ts'
import {
  type Gateway,
  startBareGuard,
  startBareProxy,
  startLatchkey,
  startNginx,
  startPortkey,
  startUpstream,
} from './proxies.ts'
import type { Result } from './report.ts'

/** Long enough for some dozens of streams one after another. */
const streamMilliseconds = 1_000
/** About what a stream takes with many at once. */
const streamTakes = 200
const jsonMilliseconds = 700
const warmUpMilliseconds = Number(process.env.BENCH_WARM_UP ?? 4_000)
/** With many streams at once, one millisecond between two events would measure nothing but how far both cores are overloaded. */
const modelFor = (concurrency: number) => (concurrency > 8 ? 'paced-4' : 'paced-1')

export async function benchGateway(note: (text: string) => void): Promise<Result[]> {
  const upstream = await startUpstream()
  const others = [
    startBareGuard(upstream.origin),
    startBareProxy(upstream.origin),
    startNginx(upstream.origin),
    startPortkey('Bun', upstream.origin),
    startPortkey('Node', upstream.origin),
  ]
  const { withTokens } = await startLatchkey(upstream.origin)
  const arms: Gateway[] = [{ ...upstream, name: 'direct' }, withTokens]
  for (const started of await Promise.allSettled(others))
    if (started.status === 'rejected') note(`left out: ${started.reason}`)
    else if ('missing' in started.value) note(`left out: ${started.value.missing}`)
    else arms.push(started.value)
  const wanted = concurrencies ?? [1, 8, 64]
  const cells: Cell[] = [
    ...wanted.map((concurrency) => ({ load: 'JSON', concurrency, milliseconds: jsonMilliseconds })),
    ...wanted.map((concurrency) => ({
      ...{ load: 'stream', concurrency, milliseconds: streamMilliseconds },
      stagger: streamTakes / concurrency,
    })),
  ]
  const credentials = new Map(await Promise.all(arms.map(async (arm) => [arm, await arm.credentials()] as const)))
  const results = await contest({
    ...{ bench: 'gateway', arms, cells, warmUpMilliseconds },
    act: (arm, { load, concurrency }, index) => {
      const known = credentials.get(arm) ?? []
      const credential = known[index % known.length] ?? ''
      return load === 'JSON' ? askWhole(arm, credential) : askStream(arm, credential, modelFor(concurrency))
    },
    onFailure: (arm, error) => note(`left out: ${arm} failed: ${error}`),
  })
  for (const { stop } of arms) await stop()
  return results
}

export async function askWhole(arm: Gateway, credential: string): Promise<undefined> {
  const text = await (await ask(arm, credential, wholeBody)).text()
  if (!text.endsWith('}')) throw new Error(`${arm.name}: ${text}`)
}

async function askStream(arm: Gateway, credential: string, model: string): Promise<number> {
  const sentAt = performance.now()
  const reader = (await ask(arm, credential, streamBody(model))).body?.getReader()
  let chunk = await reader?.read()
  const firstByte = performance.now() - sentAt
  let last = ''
  for (; chunk?.done === false; chunk = await reader?.read()) last = decoder.decode(chunk.value)
  if (!last.endsWith('[DONE]\n\n')) throw new Error(`${arm.name}: ${last}`)
  return firstByte
}

const decoder = new TextDecoder()

async function ask({ name, url, headers: own }: Gateway, credential: string, body: string): Promise<Response> {
  const headers = {
    ...own,
    authorization: `Bearer ${credential}`,
    'content-type': 'application/json',
    // Or some would compress and others not.
    'accept-encoding': 'identity',
  }
  const response = await fetch(url, { method: 'POST', headers, body })
  if (response.status !== 200) throw new Error(`${name} responded ${response.status}: ${await response.text()}`)
  return response
}

const conversation = [
  {
    role: 'system',
    content: 'You are a helpful assistant that answers in plain English and keeps it short. '.repeat(6),
  },
  { role: 'user', content: 'Summarize what follows in a few sentences, for somebody who has no time. '.repeat(14) },
]
const settings = { messages: conversation, temperature: 0.2, max_tokens: 400 }
const wholeBody = JSON.stringify({ model: 'bench', ...settings })

function streamBody(model: string): string {
  return JSON.stringify({ model, ...settings, stream: true, stream_options: { include_usage: true } })
}
