// The errors while the database server does not respond, or not as it should: one for who runs this program, and one for
// callers, who learn nothing of it.
import { isUnknownOutcome, serverFailureOf } from '../../db/remote/server-errors.ts'
import { notConfirmed } from '../../db/remote/server-failure.ts'
import { Fault } from '../fault.ts'

/**
 * The fault for a read or a commit that failed at the database server, with what to do about it; any other error unchanged. Only
 * for a commit that was certainly not made.
 */
export function explainUnreachable(error: unknown): unknown {
  const failure = serverFailureOf(error)
  return failure === undefined ? error : unavailable(failure.message, failure)
}

/** The same for a start, whose commits may be repeated by the next one. */
export function explainFailedStart(error: unknown): unknown {
  return isUnknownOutcome(error) ? unavailable(notConfirmed, error) : explainUnreachable(error)
}

/** The same fault for callers: its cause is for the log. */
export function hideUnreachable(error: unknown): unknown {
  const failure = serverFailureOf(error)
  return failure === undefined ? error : unavailable('The service is temporarily unavailable; try again later', failure)
}

function unavailable(message: string, cause: unknown): Fault {
  return new Fault('unavailable', message, { reason: 'database_unreachable', headers: { 'retry-after': '1' }, cause })
}

/** For a server that stops before the database responds, or after half an hour. */
export function outcomeUnknown(cause: unknown): Fault {
  return new Fault(
    'unavailable',
    'The service is stopping; this request can have taken effect: look before you repeat it',
    {
      reason: 'commit_outcome_unknown',
      cause,
    },
  )
}

/** For a change whose maker does not learn whether it is in force. `why` is a sentence without a full stop. */
export function changeOutcomeUnknown(why: string, cause?: unknown): Fault {
  return new Fault('unavailable', `${why}; the change can have taken effect: look before you repeat it`, {
    reason: 'commit_outcome_unknown',
    cause,
  })
}
