// Keeps the token of a long-running process fresh, and reports each renewal and failure in one line.
import { Fault, tellForCommands } from '../fault.ts'
import { type AgentDependencies, exchangeIdentity, type TokenSource } from './access-token.ts'
import type { AccessToken } from './exchange.ts'
import { type HeldToken, holdToken } from './held-token.ts'

/** Fields of a line must not hold tokens. */
export type Report = (event: string, fields?: Readonly<Record<string, string | number>>) => void

/** Writes lines such as `{"time":"…","event":"token_renewed",…}`. */
export function createReport(log: (line: string) => void, now: () => number): Report {
  return (event, fields = {}) => log(JSON.stringify({ time: new Date(now()).toISOString(), event, ...fields }))
}

type HoldingOptions = {
  report: Report
  onRenewal?: (token: AccessToken) => Promise<void>
  pauseMilliseconds?: number
}

const writePauseMilliseconds = 10_000

/**
 * Holds a token of the source. `onRenewal` may throw a fault, which is reported; it is called again after a pause until it
 * succeeds or the token is replaced.
 */
export function holdSource(
  source: TokenSource,
  dependencies: AgentDependencies,
  { report, onRenewal, pauseMilliseconds = writePauseMilliseconds }: HoldingOptions,
): HeldToken {
  const handOver = (token: AccessToken) =>
    void onRenewal?.(token).catch((error) => {
      report('write_failed', { message: textOf(error) })
      setTimeout(() => (held.current() === token ? handOver(token) : undefined), pauseMilliseconds).unref()
    })
  const held = holdToken({
    exchange: () => exchangeIdentity(source, dependencies),
    now: dependencies.now,
    onRenewal: (token) => {
      report('token_renewed', { expires_at: isoTime(token.expiresAt) })
      handOver(token)
    },
    onFailure: (error, attemptAt) =>
      report('renewal_failed', { message: textOf(error), next_attempt_at: isoTime(attemptAt) }),
  })
  return held
}

/** A computer that slept, or whose clock was set, is noticed within this time. */
const wakeMillisecondsMax = 30_000

/** Starts each exchange when it is due, whether the token is used or not. Returns what stops that. */
export function keepFresh({ get, dueAt }: HeldToken, now: () => number): () => void {
  let timer: ReturnType<typeof setTimeout>
  const wake = () => {
    if (now() >= dueAt()) void get().catch(() => {})
    timer = setTimeout(wake, Math.min(Math.max(dueAt() - now(), 100), wakeMillisecondsMax))
  }
  wake()
  return () => clearTimeout(timer)
}

function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}

function textOf(error: unknown): string {
  if (error instanceof Fault) return tellForCommands(error)
  return error instanceof Error ? error.message : String(error)
}
