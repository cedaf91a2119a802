// Access tokens that were verified a short while ago, so that a workload's next request need not wait for a signature. An entry stands for
// the exact text only, never outlives its token or the key that signed it, and says nothing of the API key: its state is looked at each time.
import { hash } from 'node:crypto'
import { verifiedTokensMax } from '../limits.ts'
import { type AccessTokenClaims, isWithinLife, type VerifiedAccessToken } from '../tokens/access-token.ts'
import type { SigningKeys } from '../tokens/signing-keys.ts'

export type TokenCache = {
  /** What the text was verified to say, if it still stands at `now` (milliseconds). */
  find: (text: string, now: number) => AccessTokenClaims | undefined
  keep: (text: string, verified: VerifiedAccessToken) => void
}

/** Holds so many tokens; the one that came first goes first. */
export function createTokenCache({ byKid }: Pick<SigningKeys, 'byKid'>, tokensMax = verifiedTokensMax): TokenCache {
  const verified = new Map<string, VerifiedAccessToken>()
  return {
    find: (text, now) => {
      const hashed = hashOf(text)
      const known = verified.get(hashed)
      if (known === undefined) return undefined
      if (isWithinLife(known.expiresAt, now) && byKid(known.kid, now) !== undefined) return known.claims
      verified.delete(hashed)
      return undefined
    },
    keep: (text, token) => {
      const hashed = hashOf(text)
      const [oldest] = verified.size >= tokensMax && !verified.has(hashed) ? verified.keys() : []
      if (oldest !== undefined) verified.delete(oldest)
      verified.set(hashed, token)
    },
  }
}

function hashOf(text: string): string {
  return hash('sha256', text, 'base64')
}
