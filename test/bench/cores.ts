// What more cores give one process: its CPU time by thread, since only one thread runs its code, and its throughput on one core and on all.
import { readdirSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { drive } from './contest.ts'
import { exchange, installTrusting, startIssuer } from './exchange.ts'
import { askWhole } from './gateway.ts'
import { type Contestant, cpuMicroseconds, rounds } from './measure.ts'
import { startLatchkey, startUpstream } from './proxies.ts'
import { addRound, type Figures, type Result } from './report.ts'

const cellMilliseconds = 2_000
const warmUpMilliseconds = 4_000
const roundsMax = 3

type Load = { name: string; concurrency: number; server: Contestant; act: (index: number) => Promise<undefined> }

/** The thread that runs the server's code has the id of the process. */
export async function benchCores(note: (text: string) => void): Promise<Result[]> {
  if (Bun.which('taskset') === null) note('left out: throughput by cores, since taskset is not installed')
  const { loads, stop } = await startLoads()
  const results: Result[] = []
  for (const { name, concurrency, server, act } of loads) {
    const cell = { load: name, concurrency, milliseconds: cellMilliseconds }
    await drive(server, { ...cell, milliseconds: warmUpMilliseconds }, (_, __, index) => act(index))
    for (const cores of Bun.which('taskset') === null ? [cpus().length] : [1, cpus().length]) {
      keepOn(server.pid, cores)
      const result: Result = { bench: 'cores', load: name, concurrency, arm: `${cores} of the cores`, figures: {} }
      for (let round = 0; round < Math.min(rounds, roundsMax); round++)
        addRound(result, await measure(server, cell, act))
      results.push(result)
    }
  }
  await stop()
  return results
}

async function startLoads(): Promise<{ loads: Load[]; stop: () => Promise<void> }> {
  const issuer = await startIssuer()
  const { installed, policyId } = await installTrusting(issuer.url)
  const { baseUrl, pid, stop } = await installed.serve()
  const fields = { federation_policy_id: policyId }
  const trusting = { name: 'latchkey', pid, stop, url: `${baseUrl}/oauth/token`, fields }
  const upstream = await startUpstream()
  const { withTokens } = await startLatchkey(upstream.origin)
  const credentials = await withTokens.credentials()
  const exchanges = ['RS256', 'ES256'].map((name) => ({
    ...{ name, concurrency: 32, server: trusting },
    act: (index: number) => exchange(trusting, issuer.tokens[name] ?? [], index),
  }))
  const act = (index: number) => askWhole(withTokens, credentials[index % credentials.length] ?? '')
  return {
    loads: [...exchanges, { name: 'JSON', concurrency: 64, server: withTokens, act }],
    stop: async () => {
      await Promise.all([stop(), withTokens.stop(), upstream.stop(), issuer.stop()])
    },
  }
}

async function measure(server: Contestant, cell: Parameters<typeof drive>[1], act: Load['act']): Promise<Figures> {
  const [before, beforeOfMain] = [cpuMicroseconds(server.pid), mainThreadMicroseconds(server.pid)]
  const { seconds, latencies } = await drive(server, cell, (_, __, index) => act(index))
  return {
    cpuMicroseconds: (cpuMicroseconds(server.pid) - before) / latencies.length,
    mainThreadMicroseconds: (mainThreadMicroseconds(server.pid) - beforeOfMain) / latencies.length,
    perSecond: latencies.length / seconds,
  }
}

/** The first number is the time that the thread ran, in nanoseconds. */
function mainThreadMicroseconds(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1_000
}

/** Keeps all threads of a process on the last cores, so many. */
function keepOn(pid: number, cores: number): void {
  const all = cpus().length
  const list = `${all - cores}-${all - 1}`
  for (const thread of readdirSync(`/proc/${pid}/task`))
    Bun.spawnSync(['taskset', '-cp', list, thread], { stdout: 'ignore', stderr: 'ignore' })
}
