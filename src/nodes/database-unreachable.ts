// The error for callers while the database server does not respond.
import { Fault } from '../fault.ts'

/** The outcome of a change can be unknown, so it says nothing of it. */
export function databaseUnreachable(cause: unknown): Fault {
  return new Fault('unavailable', 'The database server does not respond; try again later', {
    reason: 'database_unreachable',
    headers: { 'retry-after': '1' },
    cause,
  })
}
