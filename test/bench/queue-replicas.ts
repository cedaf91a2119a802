// Two equal inference servers of which one is killed every 10 seconds and started again: how many requests fail, and how many take much longer.
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'
import { installLatchkey, type Spawned, spawnServer } from './measure.ts'
import type { Result } from './report.ts'

const seconds = Number(process.env.BENCH_KILL_SECONDS ?? 120)
const killEveryMilliseconds = 10_000
const downMilliseconds = 3_000
const serviceMilliseconds = 50
const clients = 16
const delayedMilliseconds = 100

/** `BENCH_KILL_SECONDS` is how long it takes; 0 leaves it out. */
export async function benchReplicas(note: (text: string) => void): Promise<Result[]> {
  if (seconds === 0) {
    note('left out: replicas')
    return []
  }
  const ports = [await freePort(), await freePort()]
  const replicas = await Promise.all(ports.map(startReplica))
  const { run, serve } = await installLatchkey()
  const { key } = await run('keys', 'create', '--name', 'key')
  for (const port of ports)
    await run('upstreams', 'add', '--name', `gpu-${port}`, '--inference-url', `http://127.0.0.1:${port}/v1`)
  const served = await serve()
  const endAt = performance.now() + seconds * 1_000
  const seen = { failed: 0, delayed: 0, all: 0, kills: 0 }
  const client = async () => {
    while (performance.now() < endAt) {
      const sentAt = performance.now()
      const status = await ask(`${served.baseUrl}/chat/completions`, key)
      seen.all += 1
      if (status !== 200) seen.failed += 1
      if (performance.now() - sentAt > serviceMilliseconds + delayedMilliseconds) seen.delayed += 1
    }
  }
  await Promise.all([...Array.from({ length: clients }, client), killInTurn(ports, replicas, endAt, seen)])
  await Promise.all([served.stop(), ...replicas.map(({ stop }) => stop())])
  note(`${seen.all} requests and ${seen.kills} kills of a replica`)
  const figures = { failed: [seen.failed], delayedPercent: [(100 * seen.delayed) / seen.all] }
  return [{ bench: 'queue', load: 'a replica is killed every 10 s', concurrency: clients, arm: 'latchkey', figures }]
}

function startReplica(port: number): Promise<Spawned> {
  const command = [process.execPath, 'test/bench/scarce-upstream.ts', '1000', String(port)]
  return spawnServer(command, { port })
}

async function killInTurn(ports: number[], replicas: Spawned[], endAt: number, seen: { kills: number }): Promise<void> {
  for (;;) {
    await sleep(Math.min(killEveryMilliseconds - downMilliseconds, Math.max(0, endAt - performance.now())))
    if (performance.now() >= endAt) return
    const at = seen.kills % replicas.length
    await replicas[at]?.stop('SIGKILL')
    seen.kills += 1
    await sleep(downMilliseconds)
    replicas[at] = await startReplica(ports[at] ?? 0)
  }
}

async function ask(url: string, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: `takes-${serviceMilliseconds}`, messages: [{ role: 'user', content: 'hi' }] })
  const response = await fetch(url, { method: 'POST', headers, body })
  await response.text()
  return response.status
}
