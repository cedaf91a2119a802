// A program that runs in place of this one: it has the terminal, gets the signals, and gives the exit code.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Environment } from './identity.ts'

const passedOn = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGCONT'] as const
/** The terminal sends these to every program in the foreground, so the child has them already. */
const ofTerminal: readonly string[] = ['SIGINT', 'SIGQUIT']

/** Input or output can be redirected while the terminal still sends its signals. */
const isAtTerminal = () => [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY)

/** What shells use for a program that was not found, and for one that could not be started. */
const [notFound, notStarted] = [127, 126]

/**
 * Runs a program with its arguments until it ends. Resolves with its exit code, or 128 and the number of the signal that
 * ended it. A program that cannot be started is reported to `log`.
 */
export function runChild(
  [program = '', ...args]: readonly string[],
  environment: Environment,
  log: (line: string) => void,
): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: 'inherit', env: environment })
    const handlers = passedOn.map((signal) => {
      const handle = () => {
        if (!(isAtTerminal() && ofTerminal.includes(signal))) child.kill(signal)
      }
      process.on(signal, handle)
      return () => process.off(signal, handle)
    })
    const end = (code: number) => {
      for (const remove of handlers) remove()
      resolve(code)
    }
    child.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      const reason = code === 'ENOENT' ? 'it was not found; is it in PATH?' : message
      log(`latchkey: ${program} could not be started: ${reason}`)
      end(code === 'ENOENT' ? notFound : notStarted)
    })
    child.once('exit', (code, signal) => end(code ?? 128 + (constants.signals[signal ?? 'SIGKILL'] ?? 0)))
  })
}
