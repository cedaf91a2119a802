// Deadlines of requests: many at once, of few lengths, and nearly all canceled in time. One timer looks after all of them; a timer for each
// would cost more than the rest of what waits.
import { every } from './every.ts'

/** How late a deadline can be met. */
const stepMilliseconds = 50

/** A deadline among those of the same length, which are due in the order in which they were set. */
export type Deadline = {
  readonly act: () => void
  readonly dueAt: number
  readonly line: Line
  before: Deadline | undefined
  after: Deadline | undefined
}
type Line = { first: Deadline | undefined; last: Deadline | undefined }

const lines = new Map<number, Line>()
let waiting = 0
let stop: (() => void) | undefined

/** Calls `act` once this time has passed, at most `stepMilliseconds` later. */
export function setDeadline(milliseconds: number, act: () => void): Deadline {
  let line = lines.get(milliseconds)
  if (line === undefined) {
    line = { first: undefined, last: undefined }
    lines.set(milliseconds, line)
  }
  const { last } = line
  const deadline: Deadline = { act, dueAt: performance.now() + milliseconds, line, before: last, after: undefined }
  if (last === undefined) line.first = deadline
  else last.after = deadline
  line.last = deadline
  waiting += 1
  stop ??= every(stepMilliseconds, meet)
  return deadline
}

/** Has no effect on a deadline that was met or cleared. */
export function clearDeadline(deadline: Deadline): void {
  const { line, before, after } = deadline
  if (before === undefined && line.first !== deadline) return
  if (before === undefined) line.first = after
  else before.after = after
  if (after === undefined) line.last = before
  else after.before = before
  deadline.before = undefined
  deadline.after = undefined
  waiting -= 1
}

function meet(): void {
  // Not with the last deadline: requests that come one after the other would start a timer each.
  if (waiting === 0) {
    stop?.()
    stop = undefined
    lines.clear()
    return
  }
  const now = performance.now()
  for (const line of lines.values())
    for (let { first } = line; first !== undefined && first.dueAt <= now; first = line.first) {
      clearDeadline(first)
      first.act()
    }
}
