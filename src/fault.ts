// The one error type. It keeps what a caller may read apart from what an admin must know, and knows nothing of HTTP or exit codes.

export type FaultCode =
  | 'invalid'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'too_large'
  | 'timeout'
  | 'rate_limited'
  | 'bad_gateway'
  | 'gateway_timeout'
  | 'unavailable'
  | 'usage'
  | 'configuration'
  | 'internal'

/**
 * A refusal or failure with a public message (sentence case, no full stop, safe to show to the caller) and, apart from it,
 * a private reason for log and audit.
 */
export class Fault extends Error {
  readonly code: FaultCode
  readonly reason: string
  readonly headers: Record<string, string>

  constructor(
    code: FaultCode,
    publicMessage: string,
    more: { reason?: string; cause?: unknown; headers?: Record<string, string> } = {},
  ) {
    super(publicMessage, more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'Fault'
    this.code = code
    this.reason = more.reason ?? publicMessage
    this.headers = more.headers ?? {}
  }
}

/** The text of anything thrown, with its causes, on one line: for logs only, never for callers. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const own =
    error instanceof Fault && error.reason !== error.message ? `${error.message} (${error.reason})` : error.message
  return error.cause === undefined ? own : `${own}: ${describeError(error.cause)}`
}
