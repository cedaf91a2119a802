// The one error type. It keeps what a caller may read apart from what an admin must know, and knows nothing of HTTP or exit codes.

export type FaultCode =
  | 'invalid'
  | 'unauthorized'
  | 'payment_required'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'too_large'
  | 'unsupported_media_type'
  | 'timeout'
  | 'rate_limited'
  | 'bad_gateway'
  | 'gateway_timeout'
  | 'unavailable'
  | 'usage'
  | 'configuration'
  | 'internal'

/** What says more than that is a value that somebody sent, told back. */
const textCharactersMax = 8_000

/**
 * A text without the credentials that slipped into it: keys of ours, passwords in URLs, and whatever begins like a JWT. Cut to what a
 * person would read. Its time grows with the length alone, whatever the text is: callers choose many of these texts.
 */
export function withoutSecrets(text: string): string {
  const cut = text.length > textCharactersMax ? `${text.slice(0, textCharactersMax)}…` : text
  return cut
    .replaceAll(/(\/\/)[^\s/@]{1,512}@/g, '$1…@')
    .replaceAll(/sk-lk-v1-[0-9a-f]{9,}/gi, 'sk-lk-v1-…')
    .replaceAll(/[\w.%-]+/g, withoutToken)
}

/**
 * A run of the characters of tokens, without the token in it and what follows: a part of it that begins like a JWT, with a separator and
 * more behind. One expression for this would try every `eyJ` up to the end of the run.
 */
function withoutToken(run: string): string {
  for (const { 0: part, index } of run.matchAll(/[\w-]{11,}/g)) {
    const start = part.search(/eyj/i)
    const isLongEnough = start >= 0 && part.length - start >= 'eyJ'.length + 8
    const rest = run.slice(index + part.length, index + part.length + 4)
    if (isLongEnough && /^(?:\.|%2e)./i.test(rest)) return `${run.slice(0, index + start)}(a token)`
  }
  return run
}

/**
 * A refusal or failure with a public message (sentence case, no full stop, safe to show to the caller) and, apart from it,
 * a private reason for log and audit, and a hint that only makes sense to whoever types commands: it goes on where the message ends.
 */
export class Fault extends Error {
  readonly code: FaultCode
  readonly reason: string
  readonly hint: string
  readonly headers: Record<string, string>

  constructor(
    code: FaultCode,
    publicMessage: string,
    more: { reason?: string; hint?: string; cause?: unknown; headers?: Record<string, string> } = {},
  ) {
    super(withoutSecrets(publicMessage), more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'Fault'
    this.code = code
    this.reason = withoutSecrets(more.reason ?? publicMessage)
    this.hint = withoutSecrets(more.hint ?? '')
    this.headers = more.headers ?? {}
  }
}

/** What a command tells of a fault. */
export function tellForCommands({ message, hint }: Fault): string {
  return message + hint
}

/** The text of anything thrown, with its causes, on one line: for logs only, never for callers. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const own =
    error instanceof Fault && error.reason !== error.message ? `${error.message} (${error.reason})` : error.message
  return error.cause === undefined ? own : `${own}: ${describeError(error.cause)}`
}
