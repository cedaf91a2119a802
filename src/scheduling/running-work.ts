// What this process is doing at the moment that takes long: operations and scheduled runs, and how far each is.

type OnProgress = (done: number, total: number) => void

/** `startedAt` in milliseconds since 1970 UTC. `done` of `total` rows or bytes; both zero until it reports. */
export type Work = { readonly name: string; readonly startedAt: number; done: number; total: number }

export type RunningWork = {
  /** Runs it, and lists it meanwhile. Its progress also goes to `onProgress`, which may throw to end it. */
  watch: <Result>(
    name: string,
    run: (onProgress: OnProgress) => Promise<Result>,
    onProgress?: OnProgress,
  ) => Promise<Result>
  /** The oldest first. */
  list: () => readonly Work[]
}

export function createRunningWork(now: () => number): RunningWork {
  const running = new Set<Work>()
  return {
    watch: async (name, run, onProgress) => {
      const work: Work = { name, startedAt: now(), done: 0, total: 0 }
      running.add(work)
      try {
        return await run((done, total) => {
          work.done = done
          work.total = total
          onProgress?.(done, total)
        })
      } finally {
        running.delete(work)
      }
    },
    list: () => [...running],
  }
}
