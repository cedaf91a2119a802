// The compiled program from its start to its first response, and its memory at rest, beside a binary with nothing but `Bun.serve` that is
// built in the same run.
import { cpSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fill } from './growth.ts'
import { benchFolder, cpuMicroseconds, installLatchkey, repository, residentMegabytes, rounds } from './measure.ts'
import { addRound, type Figures, type Result } from './report.ts'

/** A start is short and noisy. */
const startsPerRound = 2
/** Until the memory that a start leaves behind is given back. */
const settleMilliseconds = 2_000
const answerMillisecondsMax = 60_000

type Arm = { name: string; command: (port: number) => string[] }

export async function benchStart(): Promise<Result[]> {
  const arms = await prepareArms()
  const results = arms.map(
    ({ name }): Result => ({ bench: 'start', load: 'binary', concurrency: 0, arm: name, figures: {} }),
  )
  // The first start of a binary reads it from the disk.
  for (const arm of arms) await measureStart(arm, 0)
  for (let start = 0; start < rounds * startsPerRound; start++) {
    const order = start % 2 === 0 ? [...arms.keys()] : [...arms.keys()].toReversed()
    for (const index of order) {
      const [arm, result] = [arms[index], results[index]]
      if (arm !== undefined && result !== undefined) addRound(result, await measureStart(arm, settleMilliseconds))
    }
  }
  return results
}

async function prepareArms(): Promise<Arm[]> {
  const binaries = benchFolder()
  const [program, bare] = [join(binaries, 'latchkey'), join(binaries, 'empty')]
  await build(['scripts/build/build.ts', '--outfile', program])
  const compiled = ['build', '--compile', '--minify', '--bytecode', '--format=esm']
  await build([...compiled, join(import.meta.dirname, 'empty-server.ts'), '--outfile', bare])
  const { folder } = await installLatchkey()
  const grown = benchFolder()
  cpSync(folder, grown, { recursive: true })
  // Policies need an issuer.
  await fill(grown, { issuers: 1, keys: 100_000, policies: 100_000 })
  const serve = (from: string) => (port: number) => [
    ...[program, 'serve', '--listen', `127.0.0.1:${port}`],
    ...['--database-url', `file:${join(from, 'latchkey-data/latchkey.db')}`],
  ]
  return [
    { name: 'empty Bun.serve', command: (port) => [bare, String(port)] },
    { name: 'latchkey', command: serve(folder) },
    { name: '100,000 policies and keys', command: serve(grown) },
  ]
}

async function build(args: string[]): Promise<void> {
  const child = Bun.spawn([process.execPath, ...args], { cwd: repository, stdout: 'ignore', stderr: 'inherit' })
  if ((await child.exited) !== 0) throw new Error(`bun ${args.join(' ')} failed`)
}

async function measureStart({ name, command }: Arm, settle: number): Promise<Figures> {
  const port = await freePort()
  const startedAt = performance.now()
  const child = Bun.spawn(command(port), { env: {}, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  try {
    while (!(await isAnswered(port))) {
      if (child.exitCode !== null || performance.now() - startedAt > answerMillisecondsMax)
        throw new Error(`${name} did not start`)
      await Bun.sleep(1)
    }
    const startMilliseconds = performance.now() - startedAt
    const startCpuMilliseconds = cpuMicroseconds(child.pid) / 1_000
    await Bun.sleep(settle)
    return { startMilliseconds, startCpuMilliseconds, rssMegabytes: residentMegabytes(child.pid) }
  } finally {
    child.kill()
    await child.exited
  }
}

async function isAnswered(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/livez`, { keepalive: false }).catch(() => undefined)
  await response?.arrayBuffer()
  return response?.ok === true
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}
