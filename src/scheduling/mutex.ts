// Runs work that must not overlap, such as changes that depend on what they have read: each starts when the one before it has ended.

/** Runs the work alone, after everything that was queued before it. */
export type ExclusiveRun = <Result>(work: () => Promise<Result>) => Promise<Result>
/** Runs the work in one turn with the shared work queued directly before it. */
export type SharedRun = ExclusiveRun

/** Shared work that runs together. Nothing is kept of work that has ended, however long other work goes on. */
type SharedTurn = { start: Promise<unknown>; running: number; end: () => void }

/** A failure does not affect the work after it. */
export function createMutex(): { runExclusive: ExclusiveRun; runShared: SharedRun } {
  let last: Promise<unknown> = Promise.resolve()
  /** The shared turn at the end of the queue, while any of its work runs. */
  let turn: SharedTurn | undefined

  function beginTurn(): SharedTurn {
    const { promise, resolve: end } = Promise.withResolvers<void>()
    const begun = { start: last, running: 0, end }
    last = promise
    return begun
  }

  return {
    runExclusive: (work) => {
      const result = last.then(work)
      last = result.catch(() => {})
      turn = undefined
      return result
    },
    runShared: (work) => {
      turn ??= beginTurn()
      const joined = turn
      joined.running += 1
      const leave = () => {
        joined.running -= 1
        if (joined.running > 0) return
        if (turn === joined) turn = undefined
        joined.end()
      }
      const result = joined.start.then(work)
      result.then(leave, leave)
      return result
    },
  }
}
