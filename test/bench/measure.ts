// What the benches measure: child processes that never outlive the bench, CPU time and memory as Linux reports them, medians and spreads.
import { dlopen, ptr } from 'bun:ffi'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd } from '../support/at-end.ts'
import { runCommand, startServing, temporaryFolder } from '../support/latchkey.ts'

export const repository = join(import.meta.dirname, '../..')
export const rounds = Number(process.env.BENCH_ROUNDS ?? 7)
/** Instead of the usual concurrencies of a bench, e.g. `BENCH_CONCURRENCY=2,4`. */
export const concurrencies = process.env.BENCH_CONCURRENCY?.split(',').map(Number)

/** Whose CPU time and memory count: a process and its children. */
export type Contestant = {
  name: string
  pid: number
  /** Further processes whose CPU time counts. */
  others?: number[]
  stop: () => Promise<unknown>
  /** How much of what is measured one request does, if more than one. */
  each?: number
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

/** A folder that goes with the bench, however that ends. */
export function benchFolder(): string {
  const { path, remove } = temporaryFolder()
  atEnd(remove)
  return path
}

export type Spawned = {
  pid: number
  port: number
  send: (message: object) => void
  stop: (signal?: NodeJS.Signals) => Promise<unknown>
}

/**
 * Starts a server that prints its port, or that is to listen on `port`, and waits until it listens. `send` is for one
 * that takes messages.
 */
export async function spawnServer(
  command: string[],
  { port = 0, env = {}, takesMessages = false } = {},
): Promise<Spawned> {
  const child = Bun.spawn(command, {
    cwd: repository,
    env: { ...process.env, ...env },
    stdin: 'ignore',
    stdout: port === 0 ? 'pipe' : 'ignore',
    stderr: 'ignore',
    ...(takesMessages && { ipc: () => {} }),
  })
  atEnd(() => child.kill())
  const stop: Spawned['stop'] = (signal = 'SIGTERM') => {
    child.kill(signal)
    return child.exited
  }
  if (port > 0) await untilAnswered(`http://127.0.0.1:${port}/`, child)
  const listening = port || (await readPort(child.stdout as ReadableStream<Uint8Array>))
  return { pid: child.pid, port: listening, send: (message) => child.send(message), stop }
}

async function readPort(stdout: ReadableStream<Uint8Array>): Promise<number> {
  const { value } = await stdout.getReader().read()
  return Number(new TextDecoder().decode(value).trim().split('\n').at(-1))
}

async function untilAnswered(url: string, child: Bun.Subprocess): Promise<void> {
  for (;;) {
    const isAnswered = await fetch(url).then(
      () => true,
      () => false,
    )
    if (isAnswered) return
    if (child.exitCode !== null) throw new Error(`${url} ended with ${child.exitCode}`)
    await Bun.sleep(50)
  }
}

const forBenches = {
  LATCHKEY_INSECURE_ISSUERS: 'true',
  LATCHKEY_RATE_LIMIT: '0',
  LATCHKEY_LISTEN: '127.0.0.1:0',
}

export type Installed = {
  folder: string
  /** Runs a command with `--json` and gives what it printed. */
  run: (...args: string[]) => Promise<{ id: string; key: string }>
  serve: () => Promise<Served>
}

export type Served = {
  baseUrl: string
  /** Where it listens, whatever its base URL. */
  listening: string
  /** The URL of its metrics, if the settings have an address for them. */
  metrics: string | undefined
  pid: number
  stop: (signal?: NodeJS.Signals) => Promise<unknown>
}

/** An initialized Latchkey that trusts http issuers on this machine and limits nobody's rate; its folder goes with the bench. */
export async function installLatchkey(settings: Record<string, string> = {}): Promise<Installed> {
  const folder = benchFolder()
  const env = { ...forBenches, ...settings }
  const run: Installed['run'] = async (...args) => {
    const { code, stdout, stderr } = await runCommand([...args, '--json'], { cwd: folder, env })
    if (code !== 0) throw new Error(stderr)
    return JSON.parse(stdout) as { id: string; key: string }
  }
  await run('init')
  return { folder, run, serve: () => serveFolder(folder, settings) }
}

/** Serves what is in the folder of an installation, or in a copy of it. */
export async function serveFolder(folder: string, settings: Record<string, string> = {}): Promise<Served> {
  const serving = await startServing(['serve'], { cwd: folder, env: { ...forBenches, ...settings } })
  atEnd(() => serving.process.kill('SIGKILL'))
  const { base_url: baseUrl = '', listening = '', metrics } = serving.facts
  return { baseUrl, listening, metrics, pid: serving.process.pid, stop: serving.stop }
}

const { symbols: libc } = dlopen('libc.so.6', { clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' } })
const time = new BigInt64Array(2)

/** User and system time of a process and its children. The clock of a process is exact; /proc counts hundredths of a second. */
export function cpuMicroseconds(pid: number): number {
  // As clock_getcpuclockid makes the number of that clock.
  if (libc.clock_gettime((~pid << 3) | 2, ptr(time)) !== 0) throw new Error(`There is no process ${pid}`)
  const own = Number(time[0]) * 1_000_000 + Number(time[1]) / 1_000
  return childrenOf(pid).reduce((sum, child) => sum + cpuMicroseconds(child), own)
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}

/** Resident memory of a process and its children now, or the most that it ever was. */
export function residentMegabytes(pid: number, which: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
  const [, kilobytes] = new RegExp(`${which}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return childrenOf(pid).reduce((sum, child) => sum + residentMegabytes(child, which), Number(kilobytes) / 1_024)
}

export function median(values: number[]): number {
  return quantile(values, 0.5)
}

/** The value that this share of the values does not exceed; NaN without values. */
export function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** Half of what the middle half of the values spans. */
export function spread(values: number[]): number {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / 2
}
