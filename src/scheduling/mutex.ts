// Runs work that must not overlap, such as changes that depend on what they have read: each starts when the one before it has ended.

/** Runs the work alone, after everything that was queued before it. */
export type RunExclusive = <Result>(work: () => Promise<Result>) => Promise<Result>
/** Runs the work in one turn with the shared work queued directly before it. */
export type RunShared = RunExclusive

/** A failure does not affect the work after it. */
export function createMutex(): { runExclusive: RunExclusive; runShared: RunShared } {
  let last: Promise<unknown> = Promise.resolve()
  /** When the shared turn at the end of the queue starts, if there is one. */
  let sharedStart: Promise<unknown> | undefined
  return {
    runExclusive: (work) => {
      const result = last.then(work)
      last = result.catch(() => {})
      sharedStart = undefined
      return result
    },
    runShared: (work) => {
      sharedStart ??= last
      const result = sharedStart.then(work)
      // Without their values, which would be kept as long as shared work follows shared work.
      last = Promise.all([last, result.catch(() => {})]).then(() => {})
      return result
    },
  }
}
