// The compiled program, as users run it. Tests that start commands and servers run it, which takes half the time of a start from source.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readCommit } from '../../scripts/build/release/source.ts'

const root = join(import.meta.dirname, '../..')
const folder = join(root, 'node_modules/.cache/compiled-program')
/** A program has over 100 MB. Another test run can still use the one before. */
const keptMax = 2
let path: string | undefined

/** The command line of the program that these sources make. Compiles it unless an earlier run did. */
export function compiledProgram(): string[] {
  path ??= compileOnce()
  return [path]
}

function compileOnce(): string {
  const made = join(folder, digestSources(), 'latchkey')
  if (existsSync(made)) return made
  // Two test processes can compile at the same time.
  const part = join(dirname(made), `${process.pid}.part`)
  mkdirSync(dirname(made), { recursive: true })
  const build = [process.execPath, join(root, 'scripts/build/build.ts'), '--outfile', part]
  const { exitCode, stderr } = Bun.spawnSync(build, { cwd: root })
  if (exitCode !== 0) throw new Error(`The program could not be compiled: ${stderr.toString()}`)
  renameSync(part, made)
  removeOld()
  return made
}

/** Covers whatever the build reads, and the commit that it writes into the program. */
function digestSources(): string {
  const hash = createHash('sha256').update(Bun.version).update(readCommit())
  const sources = ['src', 'db', 'scripts'].flatMap((name) => [...new Bun.Glob(`${name}/**/*`).scanSync(root)])
  for (const file of ['package.json', 'bun.lock', 'tsconfig.json', ...sources.toSorted()])
    hash.update(`\n${file}\n`).update(readFileSync(join(root, file)))
  return hash.digest('hex').slice(0, 16)
}

function removeOld(): void {
  const made = readdirSync(folder).map((name) => ({
    file: join(folder, name),
    at: statSync(join(folder, name)).mtimeMs,
  }))
  for (const { file } of made.toSorted((one, other) => other.at - one.at).slice(keptMax))
    rmSync(file, { recursive: true, force: true })
}
