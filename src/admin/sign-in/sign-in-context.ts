// What the steps of a sign-in with an issuer need, and what they read of an ID token.
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

/** Until when the ID token says who it is, by this clock. Milliseconds. */
export function validUntilOf({ exp }: Readonly<Record<string, unknown>>, now: number): number {
  return Math.min(Number(exp) * 1_000, now + lifetimeSecondsMax * 1_000)
}

export function nameOf({ email, preferred_username, name, sub }: Readonly<Record<string, unknown>>): string {
  const found = [email, preferred_username, name, sub].find((claim) => typeof claim === 'string' && claim !== '')
  return String(found)
    .replaceAll(/\p{Cc}/gu, ' ')
    .slice(0, 200)
}
