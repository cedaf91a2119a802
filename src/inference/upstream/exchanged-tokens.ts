// The access tokens that upstreams get by exchange, in memory: one exchange for all requests, renewed while the last token still works.
import type { CredentialExchange } from '../../../db/credential-exchange.ts'
import { describeError } from '../../fault.ts'
import type { Log } from '../../observe/log.ts'
import type { Fetch } from '../../runtime/outbound.ts'
import type { Upstream } from './targets.ts'
import { exchangeToken } from './token-exchange.ts'

export type ExchangedTokens = {
  /**
   * A token that has not expired. It waits only if none is at hand.
   * @throws Fault `bad_gateway` if the exchange fails
   */
  find: (upstream: Upstream, exchange: CredentialExchange) => Promise<string>
  /** Forgets a token that the upstream refused, unless it is new. Returns whether `find` now has another. */
  drop: (upstream: Upstream, token: string) => boolean
}

/** `monotonic` in milliseconds. */
export type ExchangedTokensOptions = { fetch: Fetch; monotonic: () => number; log: Log }

/** Times are monotonic milliseconds. */
type State = {
  token: string | undefined
  exchangedAt: number
  renewAt: number
  usableUntil: number
  exchanging: Promise<string> | undefined
  failures: number
  retryAt: number
  failure: unknown
}

const retrySecondsMax = 30
/** A request that starts with the token must reach the upstream before the end. */
const marginMillisecondsMax = 5_000

/** An upstream that refuses a token sooner than this will refuse the next one too. */
const refusedMillisecondsMin = 30_000

/** Keyed by the immutable value of an upstream: an edit makes a new value. */
export function createExchangedTokens({ fetch, monotonic, log }: ExchangedTokensOptions): ExchangedTokens {
  const states = new WeakMap<Upstream, State>()

  function stateOf(upstream: Upstream): State {
    const never = Number.NEGATIVE_INFINITY
    const empty = { token: undefined, exchangedAt: never, renewAt: never, usableUntil: never, retryAt: never }
    const state = states.get(upstream) ?? { ...empty, exchanging: undefined, failures: 0, failure: undefined }
    states.set(upstream, state)
    return state
  }

  async function exchangeInto(state: State, upstream: Upstream, exchange: CredentialExchange): Promise<string> {
    const startedAt = monotonic()
    try {
      const { text, lifetimeSeconds } = await exchangeToken(upstream, exchange, fetch)
      const lifetime = lifetimeSeconds * 1_000
      state.token = text
      state.exchangedAt = startedAt
      state.renewAt = startedAt + (lifetime * 2) / 3
      state.usableUntil = startedAt + lifetime - Math.min(marginMillisecondsMax, lifetime / 10)
      state.failures = 0
      state.retryAt = Number.NEGATIVE_INFINITY
      log('info', 'upstream_token_exchanged', { upstream: upstream.name, lifetime_seconds: lifetimeSeconds })
      return text
    } catch (error) {
      state.failure = error
      state.retryAt = monotonic() + Math.min(retrySecondsMax, 2 ** state.failures) * 1_000
      state.failures += 1
      log('warn', 'upstream_exchange_failed', { upstream: upstream.name, reason: describeError(error) })
      throw error
    }
  }

  function renew(state: State, upstream: Upstream, exchange: CredentialExchange): Promise<string> {
    state.exchanging ??= exchangeInto(state, upstream, exchange).finally(() => {
      state.exchanging = undefined
    })
    return state.exchanging
  }

  return {
    find: async (upstream, exchange) => {
      const state = stateOf(upstream)
      const at = monotonic()
      const isDue = at >= state.renewAt
      const isUsable = state.token !== undefined && at < state.usableUntil
      if (isUsable && !isDue) return state.token as string
      if (state.exchanging === undefined && at < state.retryAt) {
        if (isUsable) return state.token as string
        throw state.failure
      }
      const renewal = renew(state, upstream, exchange)
      if (!isUsable) return renewal
      renewal.catch(() => {})
      return state.token as string
    },
    drop: (upstream, token) => {
      const state = states.get(upstream)
      if (state?.token !== token) return true
      if (monotonic() - state.exchangedAt < refusedMillisecondsMin) return false
      state.token = undefined
      return true
    },
  }
}
