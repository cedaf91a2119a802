// The error for callers while the database server does not respond.
import { DrizzleQueryError } from 'drizzle-orm/errors'
import { isUnreachable, refusedStatus } from '../../db/commit-once.ts'
import { Fault } from '../fault.ts'

/** The fault for a read or a commit that failed since the database server did not respond; any other error unchanged. */
export function explainUnreachable(error: unknown): unknown {
  // Drizzle puts the statement around the error of a read.
  const cause = error instanceof DrizzleQueryError ? error.cause : error
  return isUnreachable(cause) ? databaseUnreachable(cause) : error
}

/** Only for a commit that was certainly not made. */
export function databaseUnreachable(cause: unknown): Fault {
  const status = refusedStatus(cause)
  const why =
    status === undefined
      ? 'The database server does not respond; try again later'
      : `The database server refuses requests with status ${status}: check its token, and the proxy in front of it`
  return new Fault('unavailable', why, {
    reason: 'database_unreachable',
    headers: { 'retry-after': '1' },
    cause,
  })
}

/** For a server that stops before the database responds, or after half an hour. */
export function outcomeUnknown(cause: unknown): Fault {
  return new Fault('unavailable', 'The service is stopping; this request can have taken effect', {
    reason: 'commit_outcome_unknown',
    cause,
  })
}

/** For a command that ends before the database responds. `why` is a sentence without a full stop. */
export function commandOutcomeUnknown(why: string, cause?: unknown): Fault {
  return new Fault('unavailable', `${why}; the change can have taken effect: look before you repeat it`, {
    reason: 'commit_outcome_unknown',
    cause,
  })
}
