// How commands commit to a database server that may not respond: the wait is shown, it is bounded, and anyone who ends it
// is informed that the change can have taken effect.
import type { CommitOptions } from '../../db/remote/commit-once.ts'
import { changeOutcomeUnknown } from '../../src/nodes/database-unreachable.ts'
import { every } from '../../src/scheduling/every.ts'
import { reportError } from './program.ts'

type Commits = Required<Pick<CommitOptions, 'watch' | 'outcomeMillisecondsMax'>>
type Terminal = {
  stream: { isTTY?: boolean; write: (text: string) => unknown }
  signals: Pick<NodeJS.Process, 'on' | 'off'>
  /** Called once at SIGINT or SIGTERM during a commit. It ends the process. */
  interrupt: () => void
  silentMilliseconds?: number
}

/** A command gives up after two minutes. */
const outcomeMillisecondsMax = 2 * 60_000
const signalNames = ['SIGINT', 'SIGTERM'] as const

/** Shows on a terminal how long a commit takes, and catches signals until the commit has ended. */
export function createWatch({
  stream,
  signals,
  interrupt,
  silentMilliseconds = 3_000,
}: Terminal): NonNullable<Commits['watch']> {
  return () => {
    const startedAt = performance.now()
    let isDrawn = false
    const draw = () => {
      const milliseconds = performance.now() - startedAt
      if (milliseconds < silentMilliseconds) return
      isDrawn = true
      const seconds = Math.round(milliseconds / 1_000)
      stream.write(`\rWaiting ${seconds} s for the database server to confirm. Ctrl-C ends the command\x1b[K`)
    }
    const stop = stream.isTTY === true ? every(Math.min(silentMilliseconds, 1_000), draw) : undefined
    for (const name of signalNames) signals.on(name, interrupt)
    return () => {
      stop?.()
      for (const name of signalNames) signals.off(name, interrupt)
      if (isDrawn) stream.write('\r\x1b[K')
    }
  }
}

/** For the commands of this process. */
export const watchedCommits: Commits = {
  outcomeMillisecondsMax,
  watch: createWatch({
    stream: process.stderr,
    signals: process,
    interrupt: () => {
      if (process.stderr.isTTY) process.stderr.write('\n')
      const fault = changeOutcomeUnknown('The command was interrupted during a commit')
      void reportError(fault, process.argv.includes('--json')).then((code) => process.exit(code))
    },
  }),
}
