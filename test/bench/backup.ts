// What backups and archives do to a busy server: `bun test/bench/backup.ts [MEGABYTES]` prints for how long the event loop is held, without
// and during three backups and one archive of a database of that size (default 1,024), while 32 clients exchange tokens. Linux only.
import { join } from 'node:path'
import { atEnd } from '../support/at-end.ts'
import { postExchange } from '../support/latchkey.ts'
import { repository } from './measure.ts'

const megabytes = Number(process.argv[2] ?? 1_024)
const replies: ((value: unknown) => void)[] = []
const child = Bun.spawn([process.execPath, join(repository, 'test/bench/backup-server.ts')], {
  ipc: (message) => replies.shift()?.(message),
  stdout: 'inherit',
  stderr: 'inherit',
})
atEnd(() => child.kill())
const next = <Value>() => new Promise<Value>((resolve) => replies.push(resolve as (value: unknown) => void))
const { baseUrl, policyId, token } = await next<{ baseUrl: string; policyId: string; token: string }>()

function ask<Value>(message: object): Promise<Value> {
  const answer = next<Value>()
  child.send(message)
  return answer
}

await ask({ fill: megabytes * 1024 * 1024 })

let exchanges = 0
let isOver = false
const clients = Array.from({ length: Number(process.env.BENCH_CONCURRENCY ?? 32) }, async () => {
  while (!isOver) {
    const response = await postExchange(baseUrl, { federation_policy_id: policyId, subject_token: token })
    await response.bytes()
    if (response.status !== 200) throw new Error(`Answered ${response.status}`)
    exchanges += 1
  }
})

type Figures = { p99: number; longest: number }
type Report = { wall: Figures; cpu: Figures; log: number }
async function phase(name: string, run: () => Promise<unknown>): Promise<void> {
  await ask<Report>({ report: true })
  const [before, startedAt] = [exchanges, performance.now()]
  await run()
  const { wall, cpu, log } = await ask<Report>({ report: true })
  const rate = (exchanges - before) / ((performance.now() - startedAt) / 1_000)
  const shown = (figures: Figures) =>
    `p99 ${figures.p99.toFixed(1).padStart(6)}  longest ${figures.longest.toFixed(1).padStart(6)}`
  console.log(
    `${name.padEnd(34)} time: ${shown(wall)} ms   CPU: ${shown(cpu)} ms   ${rate.toFixed(0).padStart(5)}/s   log ${(log / 1e6).toFixed(0)} MB`,
  )
}

await phase('warm-up', () => Bun.sleep(5_000))
await phase('without either, 20 s', () => Bun.sleep(20_000))
for (let round = 1; round <= 3; round++) {
  let made = { bytes: 0, milliseconds: 0 }
  await phase(`during backup ${round}`, async () => {
    made = await ask({ backup: true })
  })
  console.log(`  ${(made.bytes / 1e6).toFixed(0)} MB in ${(made.milliseconds / 1_000).toFixed(1)} s`)
  await phase('10 s after it', () => Bun.sleep(10_000))
}
let archived = { rows: 0, milliseconds: 0 }
await phase('during an archive', async () => {
  archived = await ask({ archive: true })
})
console.log(`  ${archived.rows} rows in ${(archived.milliseconds / 1_000).toFixed(1)} s`)
await phase('10 s after it', () => Bun.sleep(10_000))
isOver = true
await Promise.all(clients)
child.send({ stop: true })
await child.exited
