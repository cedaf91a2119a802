// What a promise rejects with. Bun's `rejects` makes the event loop wait while a server of the test reads in slices.
import type { Fault } from '../../src/fault.ts'

/** Resolves with the error. `asked` may be a function, which may also throw. @throws if there is no error */
export function rejectionOf(asked: Promise<unknown> | (() => unknown)): Promise<Fault> {
  return (typeof asked === 'function' ? Promise.try(asked) : asked).then(
    () => {
      throw new Error('It was not refused')
    },
    (error: Fault) => error,
  )
}
