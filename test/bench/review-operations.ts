// Runs operations on a database in this process, and prints how long each took and how long it held the event loop.
// It is a separate process, because the lock on a database lasts as long as that. `echo '[["policies.list",{}]]' | bun review-operations.ts FILE`
import { dlopen, ptr } from 'bun:ffi'
import { dependencies } from '../../scripts/shared/command-line.ts'
import { createOperationRunner } from '../../src/admin/operation/operation.ts'
import { operations } from '../../src/admin/operations.ts'
import { closeContext, openContext } from '../../src/server/context.ts'
import { loadConfig } from '../../src/settings/config.ts'

/** CPU times are of the main thread: what others on the machine do is not in them. */
export type Measured = { milliseconds: number; cpuMilliseconds: number; longestMilliseconds: number; response: unknown }

const { symbols: libc } = dlopen('libc.so.6', { clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' } })
const time = new BigInt64Array(2)
const threadClock = 3

function threadMilliseconds(): number {
  libc.clock_gettime(threadClock, ptr(time))
  return Number(time[0]) * 1_000 + Number(time[1]) / 1_000_000
}

let longest = 0
let last = threadMilliseconds()
const turn = () => {
  const now = threadMilliseconds()
  longest = Math.max(longest, now - last)
  last = now
  setImmediate(turn)
}
setImmediate(turn)

const [, , file = ''] = process.argv
const asked = JSON.parse(await Bun.stdin.text()) as [string, object][]
const flags = { LATCHKEY_DATABASE_URL: `file:${file}`, LATCHKEY_INSECURE_ISSUERS: 'true' }
const config = loadConfig({ flags, environment: {} })
const context = await openContext(config, { ...dependencies, log: () => {} }, { create: false })
const run = createOperationRunner(operations, context)
// The first operation of a process loads what checks inputs, the linter and the engine of conditions.
const first = asked[0]
if (first?.[0] === 'policies.backtest') await run(first[0], { ...first[1], limit: 100 })
else await run('policies.lint', {})
const measured: Measured[] = []
for (const [name, input] of asked) {
  Bun.gc(true)
  await Bun.sleep(5)
  longest = 0
  const [startedAt, cpuBefore] = [performance.now(), threadMilliseconds()]
  const response = await run(name, input)
  const milliseconds = performance.now() - startedAt
  measured.push({
    milliseconds,
    cpuMilliseconds: threadMilliseconds() - cpuBefore,
    longestMilliseconds: longest,
    response,
  })
}
await closeContext(context)
console.log(JSON.stringify(measured))
process.exit(0)
