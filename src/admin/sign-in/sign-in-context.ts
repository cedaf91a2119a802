// What the steps of a sign-in with an issuer need, and what they read of an ID token.
import type { Issuer } from '../../federation/issuer/issuer.ts'
import type { BearerContext } from '../../keys/bearer.ts'
import type { Log } from '../../observe/log.ts'
import type { Page } from '../../page/page.ts'
import { lifetimeSecondsMax } from '../../page/sessions.ts'
import type { Needs } from '../operation/context.ts'
import type { JudgeContext } from './judge-person.ts'
import type { ProviderContext } from './provider.ts'

/** Refresh tokens, by the id of the session that they renew. */
export type RefreshTokens = Map<string, string>

export type SignInContext = Needs<'orm' | 'writer' | 'registry' | 'now' | 'lastUses'> &
  Pick<BearerContext, 'callers'> &
  ProviderContext &
  JudgeContext & { page: Page; log: Log; refreshTokens: RefreshTokens }

type Claims = Readonly<Record<string, unknown>>

/** Until when an ID token says who it is, by this clock. Milliseconds. */
export function validUntilOf(claims: Claims, issuer: Pick<Issuer, 'pageMaxAgeSeconds'>, now: number): number {
  return Math.min(Number(claims.exp) * 1_000, now + lifetimeSecondsMax * 1_000, authenticatedUntil(claims, issuer))
}

/** Until when the sign-in at the issuer counts (OpenID Connect Core 1.0 §3.1.2.1, `max_age`). Milliseconds. */
export function authenticatedUntil(
  { auth_time: time }: Claims,
  { pageMaxAgeSeconds: maxAge }: Pick<Issuer, 'pageMaxAgeSeconds'>,
): number {
  if (maxAge === null) return Number.POSITIVE_INFINITY
  return typeof time === 'number' ? (time + maxAge) * 1_000 : 0
}

export function nameOf({ email, preferred_username, name, sub }: Claims): string {
  const found = [email, preferred_username, name, sub].find((claim) => typeof claim === 'string' && claim !== '')
  return String(found)
    .replaceAll(/\p{Cc}/gu, ' ')
    .slice(0, 200)
}
