// What presets cost: a post against the bare transaction that it needs at the least, and an inference request with a preset against one without.
import { join } from 'node:path'
import {
  benchFolder,
  type Contestant,
  concurrency,
  type Installed,
  installLatchkey,
  measureCpu,
  printFigures,
  printRatio,
  repeat,
  rounds,
  spawnServer,
} from './measure.ts'
import { presetBody, presetsPosted } from './preset-body.ts'
import { startUpstream } from './proxies.ts'

const perRound = Number(process.env.BENCH_REQUESTS ?? 2_000)
const warmUps = 6

type Loaded = Contestant & { load: (count: number) => Promise<void> }

export async function benchPresets(): Promise<void> {
  await comparePosts()
  await compareUses()
}

async function comparePosts(): Promise<void> {
  const installed = await installLatchkey()
  const { key: managementKey } = await installed.run('keys', 'create', '--name', 'bench', '--management')
  const latchkey = await installed.serve()
  const posts: Loaded = { name: 'post of a preset', ...latchkey, load: postsTo(latchkey, managementKey) }
  await measureEach(
    'a version of a preset',
    [posts, await startBare('prepared'), await startBare('client')],
    [
      ['prepared transaction of two rows', posts.name, 'at least 0.5'],
      ['the same by @libsql/client', posts.name, 'at least 0.5'],
    ],
  )
  await latchkey.stop()
}

/** The same request to one server, with its settings and with the name of a preset that has them. */
async function compareUses(): Promise<void> {
  const upstream = await startUpstream()
  const installed = await installLatchkey({ LATCHKEY_UPSTREAM_URL: `${upstream.origin}/v1` })
  const { key } = await installed.run('keys', 'create', '--name', 'caller')
  const { key: managementKey } = await installed.run('keys', 'create', '--name', 'bench', '--management')
  const latchkey = await installed.serve()
  await post(`${latchkey.baseUrl}/presets/bench/chat/completions`, managementKey, presetBody)
  const messages = [
    { role: 'user', content: 'Summarize what follows in a few sentences, for somebody in a hurry. '.repeat(14) },
  ]
  const settings = { ...JSON.parse(presetBody), messages: [...JSON.parse(presetBody).messages, ...messages] }
  const asking = (name: string, body: object): Loaded => ({ name, ...latchkey, load: asksOf(latchkey, key, body) })
  const bare = asking('without a preset', settings)
  const named = asking('with a preset', { model: '@preset/bench', messages })
  await measureEach('an inference request', [bare, named], [[named.name, bare.name, 'at most 1.15']])
  for (const { stop } of [latchkey, upstream]) await stop()
}

async function measureEach(title: string, contestants: Loaded[], ratios: [string, string, string][]): Promise<void> {
  const figures = await measureCpu(contestants, {
    warmUp: warmUps * perRound,
    count: perRound,
    load: ({ load }, count) => load(count),
  })
  printFigures(`CPU of ${title} at concurrency ${concurrency} (median of ${rounds} rounds)`, figures)
  for (const [of, to, target] of ratios) printRatio(figures, of, to, target)
}

type Serving = Awaited<ReturnType<Installed['serve']>>

function postsTo({ baseUrl }: Serving, key: string): Loaded['load'] {
  return (count) =>
    repeat(count, (index) => post(`${baseUrl}/presets/p${index % presetsPosted}/chat/completions`, key, presetBody))
}

function asksOf({ baseUrl }: Serving, key: string, body: object): Loaded['load'] {
  const text = JSON.stringify(body)
  return (count) => repeat(count, () => post(`${baseUrl}/chat/completions`, key, text))
}

async function post(url: string, key: string, body: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body })
  const text = await response.text()
  if (response.status !== 200) throw new Error(text)
}

async function startBare(kind: 'prepared' | 'client'): Promise<Loaded> {
  const file = join(benchFolder(), 'bare.db')
  const { pid, port, stop } = await spawnServer([process.execPath, 'test/bench/bare-transactions.ts', kind, file])
  const name = kind === 'prepared' ? 'prepared transaction of two rows' : 'the same by @libsql/client'
  return {
    name,
    pid,
    stop,
    load: async (count) => void (await (await fetch(`http://127.0.0.1:${port}/?count=${count}`)).text()),
  }
}
