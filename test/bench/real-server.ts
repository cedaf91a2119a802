// A real inference server with two places, behind Latchkey: how long an interactive key waits for its first token alone, beside a key that
// floods the server without a queue, and beside it with one. As `bun test/bench/real-server.ts URL [MODEL]`; contributing.md says how to get one.
import { installLatchkey, quantile } from './measure.ts'

const [, , url = '', model = 'tiny'] = process.argv
if (!URL.canParse(url)) throw new Error('As: bun test/bench/real-server.ts http://127.0.0.1:8080/v1 [MODEL]')

const places = 2
const floodClients = 12
const floodTokens = 24
const calmTokens = 4
const seconds = Number(process.env.BENCH_SECONDS ?? 40)

type Arm = { name: string; limit: string[]; clients: number }
type Seen = { first: number[]; flood: number[]; floodTokens: number }
const arms: Arm[] = [
  { name: 'alone', limit: [], clients: 0 },
  { name: 'without a queue', limit: ['--no-max-running'], clients: floodClients },
  { name: 'with a queue', limit: ['--max-running', String(places)], clients: floodClients },
]

const { run, serve } = await installLatchkey()
const keys = {
  flood: (await run('keys', 'create', '--name', 'flood', '--queue-wait', '10m')).key,
  calm: (await run('keys', 'create', '--name', 'calm', '--queue-class', 'interactive')).key,
}
await run('upstreams', 'add', '--name', 'real', '--inference-url', url)
const served = await serve()
const seen = new Map<string, Seen>()
for (const arm of arms) seen.set(arm.name, await drive(arm))
await served.stop()
report(seen)
process.exit(0)

async function drive({ name, limit, clients }: Arm): Promise<Seen> {
  if (limit.length > 0) await run('upstreams', 'update', 'real', ...limit)
  const stopping = new AbortController()
  const found: Seen = { first: [], flood: [], floodTokens: 0 }
  const endAt = performance.now() + seconds * 1_000
  const flood = Array.from({ length: clients }, async () => {
    while (performance.now() < endAt) {
      const { milliseconds, tokens } = await ask(keys.flood, floodTokens, stopping.signal)
      if (milliseconds !== undefined) found.flood.push(milliseconds)
      found.floodTokens += tokens
    }
  })
  // Until the server is full.
  if (clients > 0) await Bun.sleep(2_000)
  while (performance.now() < endAt) {
    const { first } = await ask(keys.calm, calmTokens, stopping.signal)
    if (first !== undefined) found.first.push(first)
    await Bun.sleep(50)
  }
  stopping.abort()
  await Promise.all(flood)
  console.error(`${name}: ${found.first.length} interactive and ${found.flood.length} other requests`)
  return found
}

/** Milliseconds until the first token, and until the end; undefined if it did not end well. */
async function ask(key: string, tokens: number, signal: AbortSignal) {
  const sentAt = performance.now()
  let [first, events] = [undefined as number | undefined, 0]
  try {
    const response = await fetch(`${served.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ model, max_tokens: tokens, stream: true, ignore_eos: true, seed: 1 },
        messages: [{ role: 'user', content: 'Tell me something about the sea.' }],
      }),
      signal,
    })
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += new TextDecoder().decode(chunk)
      const count = text.split('"delta":{"content"').length - 1
      if (count > 0) first ??= performance.now() - sentAt
      events = Math.max(events, count)
    }
    if (!text.includes('[DONE]')) throw new Error(`The stream has no end: ${text.slice(-300)}`)
    return { first, tokens: events, milliseconds: performance.now() - sentAt }
  } catch (error) {
    if (!signal.aborted) throw error
    return { first: undefined, tokens: events, milliseconds: undefined }
  }
}

function report(found: Map<string, Seen>): void {
  const of = (name: string, share: number) => quantile(found.get(name)?.first ?? [], share)
  console.log(`First token of the interactive key, beside ${floodClients} requests at a time of ${floodTokens} tokens:`)
  for (const { name } of arms) {
    const { first = [], floodTokens: tokens = 0 } = found.get(name) ?? {}
    const rate = Math.round(tokens / seconds)
    console.log(
      `  ${name.padEnd(16)} p50 ${Math.round(of(name, 0.5))} ms, longest ${Math.round(of(name, 1))} ms, ${first.length} requests; the other key: ${rate} tokens a second`,
    )
  }
  const times = of('without a queue', 0.5) / of('with a queue', 0.5)
  console.log(
    `${times > 1 ? 'reached' : 'MISSED'}: with a queue, half of the first tokens come ${times.toFixed(1)} times earlier`,
  )
}
