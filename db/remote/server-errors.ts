// The errors of a database server that does not respond, or not as it should: which they are, and whether a commit can
// have been made.
import { LibsqlError } from '@libsql/core/api'
import { DrizzleQueryError } from 'drizzle-orm/errors'
import { describeServerFailure, noLeader, serverError } from './server-failure.ts'

/** The code of errors of a database server that did not respond. */
export const unreachableCode = 'DATABASE_UNREACHABLE'
/** The same, where nothing was sent to it. */
export const notReachedCode = 'DATABASE_NOT_REACHED'
const unknownCode = 'COMMIT_OUTCOME_UNKNOWN'

/** Reports whether a database server did not respond. A commit that fails so was not made, unless `isUnknownOutcome`. */
export function isUnreachable(error: unknown): error is LibsqlError {
  return error instanceof LibsqlError && (error.code === unreachableCode || error.code === notReachedCode)
}

/** Reports whether it is certain that nothing was sent, or that the server has begun nothing. */
export function isNotReached(error: unknown): boolean {
  return error instanceof LibsqlError && error.code === notReachedCode
}

/** Reports whether nobody can say if a commit was made. */
export function isUnknownOutcome(error: unknown): error is LibsqlError {
  return error instanceof LibsqlError && error.code === unknownCode
}

export function unknownOutcome(batchId: string, cause: LibsqlError): LibsqlError {
  return serverError(`The commit ${batchId} was sent, and whether it was made is unknown`, unknownCode, { cause })
}

export function asUnreachable(cause: unknown, status?: number): LibsqlError {
  return isUnreachable(cause) ? cause : unreachable(unreachableCode, cause, status)
}

/** For a request of which certainly nothing was sent, or that was refused with a status: a commit in it was not made. */
export function asNotReached(cause: unknown, status?: number): LibsqlError {
  return unreachable(notReachedCode, cause, status)
}

function unreachable(code: string, cause: unknown, status?: number): LibsqlError {
  return serverError(describeServerFailure(cause, status), code, { status, cause })
}

/** For servers that have no leader. `isBegun`: whether one of them may have begun what it was asked for. */
export function noLeaderError(said: string, { isBegun }: { isBegun: boolean }): LibsqlError {
  return serverError(noLeader, isBegun ? unreachableCode : notReachedCode, { cause: new Error(said) })
}

/** For a commit of which one statement was refused and the others were made. It must not be repeated. */
export function partlyCommitted(cause: LibsqlError): LibsqlError {
  return serverError('The database server has made only a part of a commit: restore a backup', unknownCode, { cause })
}

/** Reports whether a response, or a value in it, was too large for the server. */
export function isTooLarge(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof LibsqlError && /^(RESPONSE_TOO_LARGE|SQLITE_TOOBIG)/.test(error.code)) return true
  return isTooLarge(error.cause)
}

/** The failure of the database server in the error of a read or a commit. Undefined for any other error. */
export function serverFailureOf(error: unknown): LibsqlError | undefined {
  // Drizzle puts the statement around the error of a read.
  const cause = error instanceof DrizzleQueryError ? error.cause : error
  return isUnreachable(cause) || isTooLarge(cause) ? asUnreachable(cause) : undefined
}
