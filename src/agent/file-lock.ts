// A lock between processes of one user: a file that names its holder. A holder that died does not block the others.
import { open, readFile, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../fault.ts'

const pollMilliseconds = 50
/** Longer than the longest exchange, with the identity: a lock of this age has no holder. */
const staleMilliseconds = 90_000

/**
 * Runs `work` while no other process holds the lock at `path`. Waits for a living holder. If a holder dies, two waiters
 * can in rare cases run at the same time.
 */
export async function withFileLock<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  const calledAt = performance.now()
  const deadline = calledAt + 2 * staleMilliseconds
  while (!(await take(path))) {
    if (await isAbandoned(path, performance.now() - calledAt)) await rm(path, { force: true })
    else if (performance.now() > deadline)
      throw new Fault('timeout', `The lock ${path} is held by another process`, {
        hint: ': end it, or remove the file',
      })
    else await pause(pollMilliseconds)
  }
  try {
    return await work()
  } finally {
    await rm(path, { force: true })
  }
}

async function take(path: string): Promise<boolean> {
  try {
    const file = await open(path, 'wx', 0o600)
    try {
      await file.writeFile(`${process.pid} ${hostname()}`)
    } catch (error) {
      // On a full disk, an empty lock would hold up the others.
      await rm(path, { force: true })
      throw error
    } finally {
      await file.close()
    }
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    throw new Fault('unavailable', `The lock ${path} could not be created`, {
      hint: `: ${code}; check that the disk is not full and that this user can write to the folder`,
    })
  }
}

/** `waited` does not count the time that the machine slept, during which a holder could not go on either. */
async function isAbandoned(path: string, waited: number): Promise<boolean> {
  try {
    // A lock that is still empty was taken a moment ago.
    const [pid = '', host = ''] = (await readFile(path, 'utf8')).split(' ')
    const isHere = host === hostname() && pid !== ''
    if (isHere && !isRunning(Number(pid))) return true
    if (isHere && waited <= staleMilliseconds) return false
    return Math.abs(Date.now() - (await stat(path)).mtimeMs) > staleMilliseconds
  } catch {
    // It was released meanwhile.
    return false
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
