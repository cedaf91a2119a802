// Runs work that must not overlap, such as changes that depend on what they have read: each starts when the one before it has ended.

export type RunExclusive = <Result>(work: () => Promise<Result>) => Promise<Result>

/** A failure does not affect the work after it. */
export function createMutex(): RunExclusive {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work)
    last = result.catch(() => {})
    return result
  }
}
