// One access token in memory for a process that runs longer than a token lives. It is renewed before it expires, by one
// exchange at a time. Nothing is written to disk.
import type { AccessToken } from './exchange.ts'

export type HeldToken = {
  /**
   * Returns a token that has not expired. Starts an exchange in the background when two thirds of its life are over, and
   * waits for one only if no usable token is held. Rejects with the fault of the exchange.
   */
  get: () => Promise<AccessToken>
  /** Returns a token that replaces one that the server refused; undefined if a new one would not help or is unavailable. */
  replace: (refused: string) => Promise<AccessToken | undefined>
  /** The token, if one is held that has not expired. Starts nothing. */
  current: () => AccessToken | undefined
  /** When the next exchange is due, as `now` counts. */
  dueAt: () => number
}

/** `now` is in milliseconds, since 1970 or monotonic. The callbacks report every exchange; `attemptAt` is when the next one may start. */
export type HeldTokenDependencies = {
  exchange: () => Promise<AccessToken>
  now: () => number
  onRenewal?: (token: AccessToken) => void
  onFailure?: (error: unknown, attemptAt: number) => void
}

const failurePauseMillisecondsMax = 30_000
/** A token that is refused when it is this young was refused for a different reason from its age. */
const replacedMillisecondsMin = 10_000

export function holdToken({ exchange, now, onRenewal, onFailure }: HeldTokenDependencies): HeldToken {
  let token: AccessToken | undefined
  let running: Promise<AccessToken> | undefined
  let failures = 0
  let failure: unknown
  let attemptAt = 0

  const run = async (): Promise<AccessToken> => {
    try {
      token = await exchange()
      failures = 0
      attemptAt = 0
      onRenewal?.(token)
      return token
    } catch (error) {
      failure = error
      attemptAt = now() + Math.min(failurePauseMillisecondsMax, 1_000 * 2 ** failures)
      failures += 1
      onFailure?.(error, attemptAt)
      throw error
    } finally {
      running = undefined
    }
  }
  /** After a failure, callers share it until the next attempt is due: a crowd of them must not flood the server. */
  const renew = async (): Promise<AccessToken> => {
    if (running === undefined && failures > 0 && isBetween(now(), attemptAt - failurePauseMillisecondsMax, attemptAt))
      throw failure
    running ??= run()
    return running
  }
  const current = () => (token !== undefined && isUsable(token, now()) ? token : undefined)
  const dueAt = () => (token === undefined ? attemptAt : Math.max(renewalTime(token), attemptAt))
  return {
    current,
    dueAt,
    get: async () => {
      const usable = current()
      if (usable === undefined) return renew()
      if (now() >= renewalTime(usable)) void renew().catch(() => {})
      return usable
    },
    replace: async (refused) => {
      const usable = current()
      if (usable !== undefined && usable.text !== refused) return usable
      if (usable !== undefined && isBetween(now(), usable.issuedAt, usable.issuedAt + replacedMillisecondsMin))
        return undefined
      return renew().catch(() => undefined)
    },
  }
}

function renewalTime({ issuedAt, expiresAt }: AccessToken): number {
  return issuedAt + ((expiresAt - issuedAt) * 2) / 3
}

/** The last sixth of a short life, or 10 seconds of a long one, is left for the request to arrive. */
function isUsable({ issuedAt, expiresAt }: AccessToken, now: number): boolean {
  return isBetween(now, issuedAt, expiresAt - Math.min(10_000, (expiresAt - issuedAt) / 6))
}

/** False also if the clock was set to a time before `start`. */
function isBetween(now: number, start: number, end: number): boolean {
  return now >= start && now < end
}
