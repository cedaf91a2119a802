// What a promise rejects with. Bun's `rejects` makes the event loop wait while a server of the test reads in slices.
import type { Fault } from '../../src/fault.ts'

/** Resolves with the error. @throws if the promise resolves */
export function rejectionOf(asked: Promise<unknown>): Promise<Fault> {
  return asked.then(
    () => {
      throw new Error('It was not refused')
    },
    (error: Fault) => error,
  )
}
