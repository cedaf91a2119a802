// Whether the database takes commits: known from the commits that happen, and from a probe when there was none for a while or one has
// failed. What must be recorded is refused while it does not, before an upstream works for nothing.
import { Fault } from '../fault.ts'
import { writeCheckMilliseconds } from '../limits.ts'

/** How often a probe commits while commits fail: requests that must be recorded wait for it. */
export const writeRetryMilliseconds = 1_000

export type WriteCheck = {
  /** Call it after every commit, whether it succeeded or failed. */
  note: (isCommitted: boolean) => void
  /** Milliseconds since the last commit; infinite without one, and after one that failed. */
  quietFor: () => number
  /** Whether a commit or a probe has failed, and no probe has succeeded since. */
  isFailing: () => boolean
  /** Milliseconds since that failure; 0 while commits succeed. */
  failingFor: () => number
  /**
   * Whether a commit succeeded in the last `writeCheckMilliseconds`. Otherwise `probe` commits, at most once in that time. After
   * a failure only a probe decides, at most once in `writeRetryMilliseconds`: a small commit can fit where the next
   * request does not.
   */
  isWritable: (probe: () => Promise<void>) => Promise<boolean>
}

export function createWriteCheck(monotonic: () => number): WriteCheck {
  const never = Number.NEGATIVE_INFINITY
  let isFailing = false
  let failingSince = never
  let committedAt = never
  let probedAt = never
  let probing: Promise<boolean> | undefined

  async function ask(probe: () => Promise<void>): Promise<boolean> {
    const isWritable = await probe().then(
      () => true,
      () => false,
    )
    if (!isFailing && !isWritable) failingSince = monotonic()
    isFailing = !isWritable
    probedAt = monotonic()
    probing = undefined
    return isWritable
  }

  return {
    note: (isCommitted) => {
      committedAt = isCommitted ? monotonic() : never
      if (isCommitted || isFailing) return
      isFailing = true
      failingSince = monotonic()
      probedAt = never
    },
    quietFor: () => monotonic() - committedAt,
    isFailing: () => isFailing,
    failingFor: () => (isFailing ? monotonic() - failingSince : 0),
    isWritable: async (probe) => {
      const isKnown = isFailing
        ? monotonic() - probedAt < writeRetryMilliseconds
        : monotonic() - Math.max(probedAt, committedAt) < writeCheckMilliseconds
      if (isKnown) return !isFailing
      probing ??= ask(probe)
      return probing
    },
  }
}

/** What refusing needs. */
export type WriteState = { isWriteFailing: () => boolean; isWritable: () => Promise<boolean> }

/**
 * Undefined while commits succeed. After one that failed, resolves when a probe succeeds.
 * @throws Fault `unavailable` while the database takes no commits
 */
export function requireWritable({ isWriteFailing, isWritable }: WriteState): Promise<void> | undefined {
  return isWriteFailing() ? refuseUnless(isWritable()) : undefined
}

async function refuseUnless(isWritable: Promise<boolean>): Promise<void> {
  if (await isWritable) return
  throw new Fault('unavailable', 'The service is temporarily unavailable; try again later', {
    reason: 'database_not_writable',
    headers: { 'retry-after': '5' },
  })
}
