// The access tokens that upstreams get by exchange, in memory: the server holds them as a workload of the other side does.
import type { CredentialExchange } from '../../../db/schema/credential-exchange.ts'
import { type HeldToken, holdToken } from '../../agent/held-token.ts'
import { describeError } from '../../fault.ts'
import type { Log } from '../../observe/log.ts'
import type { Fetch } from '../../runtime/outbound.ts'
import type { Upstream } from './targets.ts'
import { exchangeToken } from './token-exchange.ts'

/** `monotonic` in milliseconds. */
export type ExchangedTokensOptions = { fetch: Fetch; monotonic: () => number; log: Log }

/**
 * Returns what holds the token of an upstream. Each is kept by the immutable value of its upstream: an edit makes a new value.
 * `get` rejects with the Fault `bad_gateway` if the exchange fails.
 */
export function createExchangedTokens({ fetch, monotonic, log }: ExchangedTokensOptions) {
  const held = new WeakMap<Upstream, HeldToken>()
  return (upstream: Upstream, exchange: CredentialExchange): HeldToken => {
    const known = held.get(upstream)
    if (known !== undefined) return known
    const created = holdToken({
      exchange: async () => {
        const issuedAt = monotonic()
        const { text, lifetimeSeconds } = await exchangeToken(upstream, exchange, fetch)
        log('info', 'upstream_token_exchanged', { upstream: upstream.name, lifetime_seconds: lifetimeSeconds })
        return { text, issuedAt, expiresAt: issuedAt + lifetimeSeconds * 1_000 }
      },
      now: monotonic,
      onFailure: (error) =>
        log('warn', 'upstream_exchange_failed', { upstream: upstream.name, reason: describeError(error) }),
    })
    held.set(upstream, created)
    return created
  }
}
