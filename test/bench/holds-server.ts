// The server of the holds bench, as a child process: serves, and shows by IPC how long its event loop was held, in CPU time of its main thread.
import { dlopen, ptr } from 'bun:ffi'
import { readFileSync } from 'node:fs'
import { startTestServer } from '../support/latchkey.ts'

const { symbols: libc } = dlopen('libc.so.6', { clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' } })
const time = new BigInt64Array(2)
const threadClock = 3

/** Milliseconds that this thread was on a CPU: what others on the machine do is not in it. */
function threadMilliseconds(): number {
  libc.clock_gettime(threadClock, ptr(time))
  return Number(time[0]) * 1_000 + Number(time[1]) / 1_000_000
}

/** The longest hold, and the longest of the others. */
let longest = [0, 0]
let last = threadMilliseconds()
setInterval(() => {
  const now = threadMilliseconds()
  longest = [...longest, now - last].toSorted((one, other) => other - one).slice(0, 2)
  last = now
}, 1)

const { server, admin } = await startTestServer({ upstreamUrl: process.argv[2] })

/** The median of three, each after a collection of garbage. */
function measureParse(file: string): number {
  const text = readFileSync(file, 'utf8')
  const times = [1, 2, 3].map(() => {
    Bun.gc(true)
    const before = threadMilliseconds()
    try {
      JSON.parse(text)
    } catch {}
    return threadMilliseconds() - before
  })
  return times.toSorted((one, other) => one - other)[1] ?? 0
}

type Asked = { admin: [name: string, input: object] } | { parse: string } | { longest: true }
process.on('message', async (asked: Asked) => {
  if ('admin' in asked) process.send?.(await admin(asked.admin[0] as 'keys.create', asked.admin[1] as never))
  else if ('parse' in asked) process.send?.(measureParse(asked.parse))
  else {
    process.send?.(longest)
    Bun.gc(true)
    await Bun.sleep(5)
    last = threadMilliseconds()
    longest = [0, 0]
    process.send?.(0)
  }
})
process.send?.(server.baseUrl)
