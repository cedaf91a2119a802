// Measures processor time, so that limits on it also hold on a busy machine.

/** What takes longer is run more often: on a busy machine, two processes that share a core take twice as long. */
const quickMilliseconds = 20
const [runsMin, runsMax] = [3, 12]

/** Returns the least processor time of some runs in milliseconds, for this process only. */
export function cpuMilliseconds(run: () => unknown): number {
  let least = Number.POSITIVE_INFINITY
  for (let runs = 0; runs < runsMin || (runs < runsMax && least > quickMilliseconds); runs++) {
    const before = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, (user + system) / 1_000)
  }
  return least
}
