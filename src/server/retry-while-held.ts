// Waits for another process that holds the database for a moment, such as a command.
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../fault.ts'
import { databaseWaitMillisecondsMax } from '../limits.ts'

/**
 * Retries while another process briefly holds the database, for up to `databaseWaitMillisecondsMax`.
 * @throws Fault of the last attempt
 */
export async function retryWhileHeld<Result>(attempt: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + databaseWaitMillisecondsMax
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      const isHeld = error instanceof Fault && error.reason === 'database_held'
      if (!isHeld || performance.now() > deadline) throw error
      // A random delay keeps waiting processes from colliding at every attempt.
      await pause(20 + Math.random() * 80)
    }
  }
}
