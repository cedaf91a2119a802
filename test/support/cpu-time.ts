// Measures processor time, so that limits on it also hold on a busy machine.

/** The least of three runs in milliseconds of this process's processor time, so that a busy machine does not count. */
export function cpuMilliseconds(run: () => unknown): number {
  const once = () => {
    const before = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
  return Math.min(once(), once(), once())
}
