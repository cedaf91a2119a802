// Whether the database takes commits: known from the commits that happen, and from a probe when there was none for a while.
import { writeCheckMilliseconds } from '../limits.ts'

export type WriteCheck = {
  /** Call it after every commit, whether it succeeded or failed. */
  note: (isCommitted: boolean) => void
  /** Milliseconds since the last commit; infinite without one, and after one that failed. */
  quietFor: () => number
  /** Whether a commit succeeded in the last `writeCheckMilliseconds`. Otherwise `probe` commits, at most once in that time. */
  isWritable: (probe: () => Promise<void>) => Promise<boolean>
}

export function createWriteCheck(monotonic: () => number): WriteCheck {
  const never = Number.NEGATIVE_INFINITY
  let known = { isWritable: false, at: never }
  let probing: Promise<boolean> | undefined

  async function ask(probe: () => Promise<void>): Promise<boolean> {
    const isWritable = await probe().then(
      () => true,
      () => false,
    )
    known = { isWritable, at: monotonic() }
    probing = undefined
    return isWritable
  }

  return {
    // One failed commit proves nothing about the next, so a probe decides.
    note: (isCommitted) => {
      known = { isWritable: isCommitted, at: isCommitted ? monotonic() : never }
    },
    quietFor: () => monotonic() - known.at,
    isWritable: async (probe) => {
      if (monotonic() - known.at < writeCheckMilliseconds) return known.isWritable
      probing ??= ask(probe)
      return probing
    },
  }
}
