// A real libSQL server behind the stand-in's door, for tests on the real one: LATCHKEY_TEST_SQLD is the command that starts
// it. Each database is a process with its own folder, on this machine alone.
import { join } from 'node:path'
import { freePort } from './free-port.ts'

export type Sqld = { url: string; close: () => Promise<void> }

/** The words of the command, if the environment names one. */
export function sqldCommand(): string[] | undefined {
  return process.env.LATCHKEY_TEST_SQLD?.split(' ')
}

/** The file of a database that tests keep at this path. */
export function databaseFileAt(path: string): string {
  return sqldCommand() === undefined ? path : join(folderOf(path), 'dbs/default/data')
}

const folderOf = (path: string) => `${path}.sqld`

/** Starts the server on a folder beside the path, which it creates, and waits until it serves. */
export async function startSqld(command: string[], path: string): Promise<Sqld> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = Bun.spawn(
    [...command, '--no-welcome', '-d', folderOf(path), '--http-listen-addr', `127.0.0.1:${port}`],
    {
      env: { PATH: process.env.PATH, RUST_LOG: 'off' },
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'inherit',
    },
  )
  while (!(await isServing(url))) {
    if (child.exitCode !== null) throw new Error(`${command.join(' ')} ended with ${child.exitCode}`)
    await Bun.sleep(5)
  }
  return {
    url,
    close: async () => {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

async function isServing(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    ({ ok }) => ok,
    () => false,
  )
}
