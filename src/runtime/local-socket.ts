// A local socket under a path that other programs can use too: it takes the path of a dead server only, and removes nothing but itself.
import { chmodSync, lstatSync, rmSync, type Stats } from 'node:fs'
import { Fault } from '../fault.ts'
import { type Listener, listen } from './listen.ts'
import type { Handler } from './listener.ts'

type SocketOptions = {
  path: string
  /** Who may connect, as file permissions. */
  mode: number
  /** The setting that has the path, for messages. */
  setting: string
}

/** @throws Fault `configuration` when a program listens there, another file is in the way, or the path cannot be used */
export async function listenOnSocket({ path, mode, setting }: SocketOptions, handler: Handler): Promise<Listener> {
  await removeDeadSocket(path, setting)
  const listener = await listen({ socketPath: path, setting }, handler)
  chmodSync(path, mode)
  const own = lstatSync(path)
  const drain: Listener['drain'] = async (milliseconds) => {
    await listener.drain(milliseconds)
    // Another program may have taken the path since.
    if (isSame(own, lstatSync(path, { throwIfNoEntry: false }))) rmSync(path, { force: true })
  }
  return { ...listener, drain }
}

function isSame(one: Stats, other: Stats | undefined): boolean {
  return one.ino === other?.ino && one.dev === other.dev
}

async function removeDeadSocket(path: string, setting: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) throw cannotCreate(path, 'another file is in the way; move it away')
  const code = (await findObstacle(path))?.code
  // One that is full, or of another user, may be alive.
  if (code !== 'ECONNREFUSED' && code !== 'ENOENT')
    throw cannotCreate(path, `another program listens on it; stop that program, or choose another path with ${setting}`)
  rmSync(path, { force: true })
}

function cannotCreate(path: string, why: string): Fault {
  return new Fault('configuration', `Cannot create the local socket ${JSON.stringify(path)}: ${why}`)
}

/** Why nobody can connect to the socket; undefined if a program listens there. */
export async function findObstacle(path: string): Promise<NodeJS.ErrnoException | undefined> {
  try {
    // Most starts find nothing there.
    lstatSync(path)
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
  const { connect } = await import('node:net')
  return new Promise((resolve) => {
    const attempt = connect(path, () => {
      attempt.destroy()
      resolve(undefined)
    })
    attempt.once('error', resolve)
  })
}
