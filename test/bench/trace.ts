// What holds the event loop for more than two milliseconds of CPU under steady load, by what it is: `bun test/bench/trace.ts`. The bare guard
// of the gateway bench is beside it. Linux only.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { drive } from './contest.ts'
import { askWhole } from './gateway.ts'
import type { Hold } from './hold-trace.ts'
import { benchFolder, median, repository } from './measure.ts'
import { type Gateway, startBareGuard, startLatchkey, startUpstream } from './proxies.ts'
import { alignColumns } from './report.ts'

const milliseconds = Number(process.env.BENCH_TRACE_CELL ?? 5_000)
const warmUpMilliseconds = Number(process.env.BENCH_WARM_UP ?? 6_000)

const upstream = await startUpstream()
const traced = (file: string) => ({
  HOLD_TRACE: join(benchFolder(), file),
  BUN_OPTIONS: `--preload=${join(repository, 'test/bench/hold-trace.ts')}`,
})
const [ours, others] = [traced('latchkey'), traced('guard')]
const arms: [Gateway, string][] = [
  [(await startLatchkey(upstream.origin, ours)).withTokens, ours.HOLD_TRACE],
  [await startBareGuard(upstream.origin, others), others.HOLD_TRACE],
]
for (const concurrency of [64, 1])
  for (const [arm, file] of arms) {
    const credentials = await arm.credentials()
    const act = (_: Gateway, __: unknown, index: number) => askWhole(arm, credentials[index % credentials.length] ?? '')
    const cell = { load: 'JSON', concurrency, milliseconds: warmUpMilliseconds }
    await drive(arm, cell, act)
    await readHolds(arm.pid, file)
    const { latencies, seconds } = await drive(arm, { ...cell, milliseconds }, act)
    print(`${arm.name}, JSON at ${concurrency}`, await readHolds(arm.pid, file), latencies.length, seconds)
  }
process.exit(0)

async function readHolds(pid: number, file: string): Promise<Hold[]> {
  rmSync(file, { force: true })
  process.kill(pid, 'SIGUSR2')
  while (!existsSync(file)) await Bun.sleep(1)
  return JSON.parse(readFileSync(file, 'utf8')) as Hold[]
}

/** A hold has the name of its largest part. What a collection of garbage takes is in no part. */
function nameOf({ milliseconds, requests, collected, parts }: Hold): string {
  const known = Object.values(parts).reduce((sum, part) => sum + part, 0)
  const own = requests > 3 ? 'many requests in one turn' : 'the runtime itself'
  const rest = collected ? 'collection of garbage' : own
  const [largest] = [...Object.entries(parts), [rest, milliseconds - known] as const].toSorted(
    ([, one], [, other]) => other - one,
  )
  return largest?.[0] ?? rest
}

function print(title: string, holds: Hold[], requests: number, seconds: number): void {
  const lines = [...Map.groupBy(holds, nameOf)]
    .toSorted(([, one], [, other]) => other.length - one.length)
    .map(([name, some]) => {
      const lengths = some.map((hold) => hold.milliseconds)
      const among = median(some.map((hold) => hold.requests))
      const collected = some.filter((hold) => hold.collected).length
      return [
        name,
        (some.length / seconds).toFixed(1),
        ((some.length * 1_000) / requests).toFixed(2),
        median(lengths).toFixed(1),
        Math.max(...lengths).toFixed(1),
        among.toFixed(0),
        `${Math.round((collected * 100) / some.length)} %`,
      ]
    })
  const head = [
    title,
    'a second',
    'of 1,000 requests',
    'median ms',
    'longest ms',
    'requests in it',
    'with a collection',
  ]
  for (const line of alignColumns([head, ...lines])) console.log(line)
  console.log(`${requests} requests in ${seconds.toFixed(1)} s\n`)
}
