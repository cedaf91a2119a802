// The only error type. It separates what a caller may read from what an admin needs, and knows nothing of HTTP or exit
// codes.

export type FaultCode =
  | 'invalid'
  | 'unauthorized'
  | 'payment_required'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'precondition_failed'
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

/** Longer texts contain a value that somebody sent. */
const textCharactersMax = 8_000

/** What every credential contains that `withoutSecrets` removes. */
const mayHoldSecret = /\/\/|sk-lk-v1-|eyj/i

/**
 * Removes credentials from a text: API keys, passwords in URLs, and anything that starts like a JWT. Also cuts the text
 * to a readable length. The time is linear in the length for any text, because callers choose many of these texts.
 */
export function withoutSecrets(text: string): string {
  const cut = text.length > textCharactersMax ? `${text.slice(0, textCharactersMax)}…` : text
  if (!mayHoldSecret.test(cut)) return cut
  return withoutKeysAndTokens(cut.replaceAll(/(\/\/)[^\s/@]{1,512}@/g, '$1…@'))
}

/** Removes API keys and anything that starts like a JWT. The time is linear in the length of the text. */
export function withoutKeysAndTokens(text: string): string {
  return text.replaceAll(/sk-lk-v1-[0-9a-f]{9,}/gi, 'sk-lk-v1-…').replaceAll(/[\w.%-]+/g, withoutToken)
}

/**
 * Replaces the first token in a run of token characters, and drops the rest of the run. A token is a part that starts
 * like a JWT, followed by a separator and more text. A single regular expression would try every `eyJ` to the end of
 * the run.
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

/** The reason of a refusal: a list was to go on after a row that was deleted meanwhile. */
export const pageStartGone = 'page_start_gone'

/** What refused: a row, by its id. */
export type FaultSubject = { kind: 'key' | 'policy' | 'preset' | 'budget'; id: string }

/**
 * A refusal or failure. The public message is in sentence case, has no full stop and is safe to show to the caller. The
 * reason is a word of the program, by which code distinguishes faults. Only the log has the detail, which may be any text.
 * The hint continues the message and is shown only to users of commands.
 */
export class Fault extends Error {
  readonly code: FaultCode
  readonly reason: string | undefined
  readonly subject: FaultSubject | undefined
  readonly detail: string
  readonly hint: string
  readonly headers: Record<string, string>
  /** What a refused change would have replaced; its caller may read it. */
  readonly current: unknown
  /** Of what the caller sent: the field whose value was refused. */
  readonly field: string | undefined
  /** What is wrong at each field, where that is more than one. */
  readonly fields: Readonly<Record<string, string>> | undefined
  /** What a caller's program may read of the refusal. Its reason is then the type of the error. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined

  constructor(
    code: FaultCode,
    publicMessage: string,
    more: {
      reason?: string
      subject?: FaultSubject
      detail?: string
      hint?: string
      cause?: unknown
      headers?: Record<string, string>
      current?: unknown
      field?: string | undefined
      fields?: Readonly<Record<string, string>> | undefined
      metadata?: Readonly<Record<string, unknown>>
    } = {},
  ) {
    super(withoutSecrets(publicMessage), more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'Fault'
    this.code = code
    this.reason = more.reason
    this.subject = more.subject
    this.detail = withoutSecrets(more.detail ?? '')
    this.hint = withoutSecrets(more.hint ?? '')
    this.headers = more.headers ?? {}
    this.current = more.current
    this.field = more.field
    this.fields =
      more.fields && Object.fromEntries(Object.entries(more.fields).map(([name, text]) => [name, withoutSecrets(text)]))
    this.metadata = more.metadata
  }
}

/** Returns the text that a command prints for a fault. */
export function tellForCommands({ message, hint }: Fault): string {
  return message + hint
}

/** Returns what an administrator may read of any error: that of a fault as a command prints it. */
export function causeOf(error: unknown): string {
  return error instanceof Fault ? tellForCommands(error) : describeError(error)
}

/** Returns what the log says of a fault: its reason, what refused and the detail, or else its message. */
export function logTextOf({ reason = '', subject, detail, message }: Fault): string {
  const refusing = subject === undefined ? '' : `${subject.kind} ${subject.id}`
  return [reason, refusing, detail].filter((part) => part !== '').join(', ') || message
}

/** Returns the text of any thrown value, with its causes, on one line. For logs only; never show it to callers. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const logText = error instanceof Fault ? logTextOf(error) : error.message
  const own = logText === error.message ? logText : `${error.message} (${logText})`
  return error.cause === undefined ? own : `${own}: ${describeError(error.cause)}`
}
