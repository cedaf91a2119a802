// What presets cost: a post against the bare transaction that it needs at the least, and an inference request with a preset against one without.
import { join } from 'node:path'
import { contest } from './contest.ts'
import { benchFolder, type Contestant, concurrencies, installLatchkey, spawnServer } from './measure.ts'
import { presetBody, presetsPosted } from './preset-body.ts'
import { startUpstream } from './proxies.ts'
import type { Result } from './report.ts'

const cellMilliseconds = 700
const warmUpMilliseconds = Number(process.env.BENCH_WARM_UP ?? 4_000)

type Loaded = Contestant & { act: (index: number) => Promise<void> }

export async function benchPresets(): Promise<Result[]> {
  return [...(await comparePosts()), ...(await compareUses())]
}

async function comparePosts(): Promise<Result[]> {
  const installed = await installLatchkey()
  const { key } = await installed.run('keys', 'create', '--name', 'bench', '--management')
  const { baseUrl, ...latchkey } = await installed.serve()
  const act = (index: number) => post(`${baseUrl}/presets/p${index % presetsPosted}/chat/completions`, key, presetBody)
  return compare('post of a preset', [
    { name: 'latchkey', ...latchkey, act },
    await startBare('prepared', 'prepared transaction'),
    await startBare('client', '@libsql/client'),
  ])
}

/** The same request to one server, with its settings and with the name of a preset that has them. */
async function compareUses(): Promise<Result[]> {
  const upstream = await startUpstream()
  const installed = await installLatchkey({ LATCHKEY_UPSTREAM_URL: `${upstream.origin}/v1` })
  const { key } = await installed.run('keys', 'create', '--name', 'caller')
  const { key: managementKey } = await installed.run('keys', 'create', '--name', 'bench', '--management')
  const { baseUrl, ...latchkey } = await installed.serve()
  await post(`${baseUrl}/presets/bench/chat/completions`, managementKey, presetBody)
  const messages = [
    { role: 'user', content: 'Summarize what follows in a few sentences, for somebody in a hurry. '.repeat(14) },
  ]
  const settings = { ...JSON.parse(presetBody), messages: [...JSON.parse(presetBody).messages, ...messages] }
  const asking = (name: string, body: object): Loaded => {
    const text = JSON.stringify(body)
    return { name, ...latchkey, act: () => post(`${baseUrl}/chat/completions`, key, text) }
  }
  const arms = [asking('latchkey', settings), asking('latchkey with a preset', { model: '@preset/bench', messages })]
  const results = await compare('inference request', arms)
  await upstream.stop()
  return results
}

async function compare(load: string, arms: Loaded[]): Promise<Result[]> {
  const cells = (concurrencies ?? [32]).map((concurrency) => ({ load, concurrency, milliseconds: cellMilliseconds }))
  const results = await contest({
    ...{ bench: 'presets', arms, cells, warmUpMilliseconds },
    act: async ({ act }, _cell, index) => void (await act(index)),
    onFailure: (arm, error) => {
      throw new Error(`${arm} failed`, { cause: error })
    },
  })
  for (const { stop } of arms) await stop()
  return results
}

async function post(url: string, key: string, body: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body })
  const text = await response.text()
  if (response.status !== 200) throw new Error(text)
}

/** So many transactions for one request, which would cost more than one of them. */
const transactionsEach = 20

async function startBare(kind: 'prepared' | 'client', name: string): Promise<Loaded> {
  const file = join(benchFolder(), 'bare.db')
  const { pid, port, stop } = await spawnServer([process.execPath, 'test/bench/bare-transactions.ts', kind, file])
  const url = `http://127.0.0.1:${port}/?count=${transactionsEach}`
  return { name, pid, stop, each: transactionsEach, act: async () => void (await (await fetch(url)).text()) }
}
