// How the benches measure: child processes that never outlive the bench, CPU time as Linux tells it, contestants that take turns, medians and ratios.
import { dlopen, ptr } from 'bun:ffi'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand, startServing, temporaryFolder } from '../support/latchkey.ts'

export const repository = join(import.meta.dirname, '../..')
export const rounds = Number(process.env.BENCH_ROUNDS ?? 7)
export const concurrency = Number(process.env.BENCH_CONCURRENCY ?? 32)

/** Whose CPU time counts: a process and its children. */
export type Contestant = { name: string; pid: number; stop: () => Promise<unknown> }

const endings: (() => void)[] = []
process.on('exit', () => {
  for (const end of endings) end()
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

/** A folder that goes with the bench, however that ends. */
export function benchFolder(): string {
  const { path, remove } = temporaryFolder()
  endings.push(remove)
  return path
}

export type Spawned = { pid: number; port: number; stop: () => Promise<unknown> }

/** Starts a server that prints its port, or that is to listen on `port`, and waits until it listens. */
export async function spawnServer(command: string[], { port = 0, env = {} } = {}): Promise<Spawned> {
  const child = Bun.spawn(command, {
    cwd: repository,
    env: { ...process.env, ...env },
    stdin: 'ignore',
    stdout: port === 0 ? 'pipe' : 'ignore',
    stderr: 'ignore',
  })
  endings.push(() => child.kill())
  const stop = () => {
    child.kill()
    return child.exited
  }
  if (port > 0) await untilAnswered(`http://127.0.0.1:${port}/`, child)
  return { pid: child.pid, port: port || (await readPort(child.stdout as ReadableStream<Uint8Array>)), stop }
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

export type Installed = {
  folder: string
  /** Runs a command with `--json` and gives what it printed. */
  run: (...args: string[]) => Promise<{ id: string; key: string }>
  serve: () => Promise<{ baseUrl: string; pid: number; stop: () => Promise<unknown> }>
}

/** An initialized Latchkey that trusts http issuers on this machine and limits nobody's rate; its folder goes with the bench. */
export async function installLatchkey(settings: Record<string, string> = {}): Promise<Installed> {
  const folder = benchFolder()
  const env = {
    LATCHKEY_INSECURE_ISSUERS: 'true',
    LATCHKEY_RATE_LIMIT: '0',
    LATCHKEY_LISTEN: '127.0.0.1:0',
    ...settings,
  }
  const run: Installed['run'] = async (...args) => {
    const { code, stdout, stderr } = await runCommand([...args, '--json'], { cwd: folder, env })
    if (code !== 0) throw new Error(stderr)
    return JSON.parse(stdout) as { id: string; key: string }
  }
  await run('init')
  const serve: Installed['serve'] = async () => {
    const serving = await startServing(['serve'], { cwd: folder, env })
    endings.push(() => serving.process.kill('SIGKILL'))
    const { base_url: baseUrl = '' } = serving.facts
    return { baseUrl, pid: serving.process.pid, stop: () => serving.stop() }
  }
  return { folder, run, serve }
}

/** Does something `count` times, so many of them at once. */
export async function repeat(count: number, act: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await act(next++)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}

/** Microseconds of CPU for one of what `load` does `count` times, by round; the contestants take turns within each. */
export async function measureCpu<Each extends Contestant>(
  contestants: Each[],
  { warmUp, count, load }: { warmUp: number; count: number; load: (each: Each, count: number) => Promise<void> },
): Promise<Map<string, number[]>> {
  const figures = new Map(contestants.map(({ name }) => [name, [] as number[]]))
  // Until the compilers of the runtimes have done their work, whose time would count as well.
  for (const each of contestants) await load(each, warmUp)
  for (let round = 0; round < rounds; round++) {
    for (const each of contestants) {
      const before = cpuMicroseconds(each.pid)
      await load(each, count)
      figures.get(each.name)?.push((cpuMicroseconds(each.pid) - before) / count)
    }
  }
  return figures
}

const { symbols: libc } = dlopen('libc.so.6', { clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' } })
const time = new BigInt64Array(2)

/** User and system time of a process and its children. The clock of a process is exact; /proc counts hundredths of a second. */
function cpuMicroseconds(pid: number): number {
  // As clock_getcpuclockid makes the number of that clock.
  if (libc.clock_gettime((~pid << 3) | 2, ptr(time)) !== 0) throw new Error(`There is no process ${pid}`)
  const own = Number(time[0]) * 1_000_000 + Number(time[1]) / 1_000
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
  return children.reduce((sum, child) => sum + cpuMicroseconds(Number(child)), own)
}

export function median(values: number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** The median of the ratios of the rounds, which noise that lasts longer than a round leaves alone. */
export function ratio(figures: Map<string, number[]>, of: string, to: string): number {
  const mine = figures.get(to) ?? []
  return median((figures.get(of) ?? []).map((figure, round) => figure / (mine[round] ?? Number.NaN)))
}

export function printFigures(title: string, figures: Map<string, number[]>): void {
  console.log(`\n${title}`)
  for (const [name, values] of figures) console.log(`  ${name.padEnd(34)} ${median(values).toFixed(0).padStart(6)} µs`)
}

export function printRatio(figures: Map<string, number[]>, of: string, to: string, target: string): void {
  console.log(`  ${`${of} / ${to}`.padEnd(50)} ${ratio(figures, of, to).toFixed(2)}  (target ${target})`)
}
