// Real rqlite behind the stand-in's door: LATCHKEY_TEST_RQLITE is the command of one. Each database is a process with its own folder.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd } from './at-end.ts'
import { freePort } from './free-port.ts'
import { until } from './until.ts'

const command = process.env.LATCHKEY_TEST_RQLITE?.split(' ')

/** Whether the environment names a real rqlite. */
export const isRealRqlite = command !== undefined

const folderOf = (path: string) => `${path}.rqlite`

/** Where tests read the database that they keep at this path. */
export function rqliteFileAt(path: string): string {
  return join(folderOf(path), 'db.sqlite')
}

/** What it keeps beside the path, for copies. */
export const rqliteEnd = '.rqlite'

/** Starts a cluster of one node on a folder beside the path, which it creates, and waits until it serves. */
export async function startRqlite(path: string): Promise<{ url: string; close: () => Promise<void> }> {
  const [http, raft] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${http}`
  const program = [...(command ?? []), '-fk', '-node-id', '1', '-http-addr', `127.0.0.1:${http}`]
  const child = Bun.spawn([...program, '-raft-addr', `127.0.0.1:${raft}`, folderOf(path)], {
    env: { PATH: process.env.PATH },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
  })
  atEnd(() => child.kill('SIGKILL'))
  await until(`${command?.[0]} on ${existsSync(folderOf(path)) ? 'its folder' : 'a new folder'}`, async () => {
    if (child.exitCode !== null) throw new Error(`${command?.[0]} ended with ${child.exitCode}`)
    return fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  })
  const close = async () => {
    child.kill('SIGKILL')
    await child.exited
  }
  return { url, close }
}
