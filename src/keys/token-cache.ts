// Access tokens that were verified recently, so that the next request with the same token skips the signature. An entry
// counts for the exact text only, ends with its token or the key that signed it, and never vouches for the API key,
// whose state is checked on every request.
import { hash } from 'node:crypto'
import { verifiedTokensMax } from '../limits.ts'
import { type AccessTokenClaims, isWithinLife } from '../tokens/access-token.ts'
import type { SigningKeys } from '../tokens/signing-keys.ts'
import { deferCache } from '../values/deferred-cache.ts'
import type { AllowLists } from './allow-lists.ts'

/** A verified access token. Its limits apply beside those of the key that it acts as. */
export type AccessToken = AccessTokenClaims & { readonly allowed: AllowLists }
/** `kid` is the key that signed it; `expiresAt` is in milliseconds. */
export type VerifiedToken = { accessToken: AccessToken; kid: string; expiresAt: number }

export type TokenCache = {
  /** The token with this text, if it is valid at `now` (milliseconds). */
  find: (text: string, now: number) => AccessToken | undefined
  keep: (text: string, verified: VerifiedToken) => void
}

/** Holds `tokensMax` tokens; the least recently used is dropped first. */
export function createTokenCache({ byKid }: Pick<SigningKeys, 'byKid'>, tokensMax = verifiedTokensMax): TokenCache {
  const verified = deferCache<VerifiedToken>(tokensMax)
  return {
    find: (text, now) => {
      const hashed = hashOf(text)
      const known = verified().get(hashed)
      if (known === undefined) return undefined
      if (isWithinLife(known.expiresAt, now) && byKid(known.kid, now) !== undefined) return known.accessToken
      verified().delete(hashed)
      return undefined
    },
    keep: (text, token) => {
      verified().set(hashOf(text), token)
    },
  }
}

function hashOf(text: string): string {
  return hash('sha256', text, 'base64')
}
