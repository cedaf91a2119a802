// Loaded into a server before its program (`bun --preload`): names what holds its event loop for more than two milliseconds of CPU of the main
// thread, so that work of other processes does not count. On SIGUSR2 it writes the holds since the last signal, as JSON, to the file that
// HOLD_TRACE names.
import { dlopen, ptr } from 'bun:ffi'
import { renameSync, writeFileSync } from 'node:fs'

/** `parts`: milliseconds of CPU of what could be measured separately; the rest is sockets, promises and what the runtime does itself. */
export type Hold = { milliseconds: number; requests: number; collected: boolean; parts: Record<string, number> }

const longMilliseconds = 2
const threadClock = 3
const { symbols: libc } = dlopen('libc.so.6', { clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' } })
const time = new BigInt64Array(2)
const timeAt = ptr(time)

function cpuNow(): number {
  libc.clock_gettime(threadClock, timeAt)
  return Number(time[0]) * 1_000 + Number(time[1]) / 1_000_000
}

const path = process.env.HOLD_TRACE ?? ''
let holds: Hold[] = []
let parts: Record<string, number> = {}
let requests = 0
let last = cpuNow()
/** Dies with the first collection of garbage after it. */
let canary = new WeakRef({})

function timed<Result>(name: string, work: () => Result): Result {
  const before = cpuNow()
  try {
    return work()
  } finally {
    parts[name] = (parts[name] ?? 0) + cpuNow() - before
  }
}

type Act = (...args: unknown[]) => unknown
/** Timers have no names: the beginning of their text has to do. */
const nameOf = (kind: string, act: Act) => `${kind} ${act.name || String(act).replaceAll(/\s+/g, ' ').slice(0, 60)}`

const { setTimeout: later, setInterval: repeatedly, setImmediate: next } = globalThis
const watch =
  (kind: string, set: Act) =>
  (act: Act, ...more: unknown[]) => {
    const name = nameOf(kind, act)
    return set((...args: unknown[]) => timed(name, () => act(...args)), ...more)
  }
Object.assign(globalThis, {
  setTimeout: watch('timer', later as Act),
  setInterval: watch('timer', repeatedly as Act),
  setImmediate: watch('end of a turn', next as Act),
})

const { serve } = Bun
const handler = (handle: Act) =>
  function (this: unknown, ...args: unknown[]) {
    requests += 1
    return timed('arrival of requests', () => handle.apply(this, args))
  }
Object.assign(Bun, {
  serve: (options: { fetch: Act; routes?: Record<string, unknown> }) => {
    const routes = Object.entries(options.routes ?? {}).map(([route, handle]) => [
      route,
      typeof handle === 'function' ? handler(handle as Act) : handle,
    ])
    return serve({ ...options, fetch: handler(options.fetch), routes: Object.fromEntries(routes) } as never)
  },
})

repeatedly(() => {
  const now = cpuNow()
  const collected = canary.deref() === undefined
  if (now - last > longMilliseconds) holds.push({ milliseconds: now - last, requests, collected, parts })
  if (collected) canary = new WeakRef({})
  ;[last, requests, parts] = [now, 0, {}]
}, 1).unref()

process.on('SIGUSR2', () => {
  writeFileSync(`${path}.next`, JSON.stringify(holds))
  renameSync(`${path}.next`, path)
  holds = []
})
