// The clock of the database: that of the leader, which every read shows. Between reads it goes on by the monotonic clock of
// this process, so a jump of the local clock changes nothing.

export const readClock = "select unixepoch('subsec') as now"

export type DatabaseClock = {
  /** Takes over what a read has shown, in seconds since 1970. It was read between the two times of the monotonic clock. */
  note: (seconds: unknown, sentAt: number, receivedAt: number) => void
  /** Milliseconds since 1970; by the local clock before the first read. */
  now: () => number
}

export function createDatabaseClock(monotonic: () => number): DatabaseClock {
  let ahead = Date.now() - monotonic()
  return {
    note: (seconds, sentAt, receivedAt) => {
      if (typeof seconds === 'number' && Number.isFinite(seconds)) ahead = seconds * 1_000 - (sentAt + receivedAt) / 2
    },
    now: () => ahead + monotonic(),
  }
}
