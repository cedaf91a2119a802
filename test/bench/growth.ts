// What a large installation costs at rest: time and memory of a start with many rows of each kind, beside an empty one; and an exchange under
// one policy of many.
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { contest } from './contest.ts'
import { type Exchanger, exchange, installTrusting, startIssuer } from './exchange.ts'
import type { Filling } from './fill.ts'
import { benchFolder, concurrencies, cpuMicroseconds, residentMegabytes, rounds, serveFolder } from './measure.ts'
import { addRound, type Figures, type Result } from './report.ts'

const startsMax = 5
/** Until the memory that a start leaves behind is given back. */
const settleMilliseconds = 2_000
const cellMilliseconds = 700
const warmUpMilliseconds = Number(process.env.BENCH_WARM_UP ?? 4_000)

const large = '100,000 policies and keys'
const installations: Record<string, Filling> = {
  empty: {},
  [large]: { keys: 100_000, policies: 100_000 },
  '1,000,000 policies and keys': { keys: 1_000_000, policies: 1_000_000 },
  '10,000 issuers': { issuers: 10_000 },
  '100,000 presets': { presets: 100_000 },
  '1,000,000 rows of the ledger': { requests: 1_000_000 },
}

export async function benchGrowth(note: (text: string) => void): Promise<Result[]> {
  const issuer = await startIssuer()
  const { installed, policyId } = await installTrusting(issuer.url)
  const folders = new Map<string, string>()
  for (const [name, filling] of Object.entries(installations)) {
    const folder = benchFolder()
    cpSync(installed.folder, folder, { recursive: true })
    await fill(folder, filling)
    folders.set(name, folder)
  }
  const results = await measureStarts(folders)

  const arms: Exchanger[] = []
  for (const name of ['empty', large]) {
    const { baseUrl, ...serving } = await serveFolder(folders.get(name) ?? '')
    arms.push({ name, ...serving, url: `${baseUrl}/oauth/token`, fields: { federation_policy_id: policyId } })
  }
  const exchanges = await contest({
    ...{ bench: 'growth', arms, warmUpMilliseconds },
    cells: (concurrencies ?? [32]).map((concurrency) => ({
      load: 'exchange',
      concurrency,
      milliseconds: cellMilliseconds,
    })),
    act: (arm, _cell, index) => exchange(arm, issuer.tokens.ES256 ?? [], index),
    onFailure: (arm, error) => note(`left out: ${arm} failed: ${error}`),
  })
  for (const { stop } of arms) await stop()
  await issuer.stop()
  return [...results, ...exchanges]
}

/** The lock on a database lasts as long as the process that took it, so another one does the filling. */
export async function fill(folder: string, filling: Filling): Promise<void> {
  const database = join(folder, 'latchkey-data/latchkey.db')
  const command = [process.execPath, join(import.meta.dirname, 'fill.ts'), database, JSON.stringify(filling)]
  const child = Bun.spawn(command, { stdout: 'ignore', stderr: 'inherit' })
  if ((await child.exited) !== 0) throw new Error('The database could not be filled')
}

/** Starts each installation in turn, in the other direction in every second round. */
async function measureStarts(folders: Map<string, string>): Promise<Result[]> {
  const results = new Map(
    [...folders.keys()].map((arm): [string, Result] => [
      arm,
      { bench: 'growth', load: 'start', concurrency: 0, arm, figures: {} },
    ]),
  )
  for (let round = 0; round < Math.min(rounds, startsMax); round++) {
    const order = round % 2 === 0 ? [...folders] : [...folders].toReversed()
    for (const [arm, folder] of order) {
      const result = results.get(arm)
      if (result !== undefined) addRound(result, await measureStart(folder))
    }
  }
  return [...results.values()]
}

/** From the start of the process to the line that says where it listens. */
export async function measureStart(folder: string): Promise<Figures> {
  const startedAt = performance.now()
  const { pid, stop } = await serveFolder(folder)
  const milliseconds = performance.now() - startedAt
  const cpu = cpuMicroseconds(pid) / 1_000
  await Bun.sleep(settleMilliseconds)
  const figures = {
    startMilliseconds: milliseconds,
    startCpuMilliseconds: cpu,
    rssMegabytes: residentMegabytes(pid),
    peakMegabytes: residentMegabytes(pid, 'VmHWM'),
  }
  await stop()
  return figures
}
