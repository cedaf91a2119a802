// One clock for the test process and the servers that it starts. It stands still until the test moves it.
import { setSystemTime } from 'bun:test'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromSource } from './latchkey.ts'

export type Clock = {
  /** The program from source, with this clock instead of the real one. */
  program: string[]
  moveSeconds: (seconds: number) => void
  /** Restores the real time in the test process. */
  release: () => void
}

/** Starts at the present time. `folder` holds the file that passes the time to other processes. */
export function startClock(folder: string): Clock {
  const file = join(folder, 'clock')
  const preload = join(folder, 'clock.cjs')
  const read = `Number(require('node:fs').readFileSync(${JSON.stringify(file)}, 'utf8'))`
  let now = Date.now()
  // The monotonic clock continues to run, and also advances whenever the test moves the time.
  const counting = `const count = performance.now.bind(performance)\nperformance.now = () => count() + Date.now() - ${now}`
  writeFileSync(preload, `Date.now = () => ${read}\n${counting}\n`)
  const moveSeconds = (seconds: number) => {
    now += seconds * 1_000
    // Other processes can read the file at any moment, so it is replaced atomically.
    writeFileSync(`${file}.new`, String(now))
    renameSync(`${file}.new`, file)
    setSystemTime(now)
  }
  moveSeconds(0)
  const [runtime = '', ...main] = fromSource
  return { program: [runtime, '--preload', preload, ...main], moveSeconds, release: () => void setSystemTime() }
}
