// One clock for the test process and the servers that it starts. It stands still until the test moves it.
import { setSystemTime } from 'bun:test'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromSource } from './latchkey.ts'

export type Clock = {
  /** The program from source, with this clock for its own. */
  program: string[]
  moveSeconds: (seconds: number) => void
  /** Gives the test's process its own time back. */
  release: () => void
}

/** Starts at the present time; `folder` is for what tells it to other processes. */
export function startClock(folder: string): Clock {
  const file = join(folder, 'clock')
  const preload = join(folder, 'clock.cjs')
  const read = `Number(require('node:fs').readFileSync(${JSON.stringify(file)}, 'utf8'))`
  let now = Date.now()
  // What counts goes on by itself, and by as much as the test moves the clock.
  const counting = `const count = performance.now.bind(performance)\nperformance.now = () => count() + Date.now() - ${now}`
  writeFileSync(preload, `Date.now = () => ${read}\n${counting}\n`)
  const moveSeconds = (seconds: number) => {
    now += seconds * 1_000
    // It is read at any moment, so it is replaced as a whole.
    writeFileSync(`${file}.new`, String(now))
    renameSync(`${file}.new`, file)
    setSystemTime(now)
  }
  moveSeconds(0)
  const [runtime = '', ...main] = fromSource
  return { program: [runtime, '--preload', preload, ...main], moveSeconds, release: () => void setSystemTime() }
}
