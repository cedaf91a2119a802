// Picks the one key of a set that can verify a token.
import type { SubjectToken } from '../subject-token/claims.ts'
import { type Refusal, refuse } from '../subject-token/refusal.ts'
import type { VerificationKey } from './key-set.ts'

export type KeyQuery = Pick<SubjectToken, 'kid' | 'algorithm'>

/** Returns the one key with the `kid` and algorithm of a token. */
export function pick(keys: VerificationKey[], { kid, algorithm }: KeyQuery): VerificationKey | Refusal {
  const [first, second] = keys.filter((key) => key.algorithm === algorithm && (kid === undefined || key.kid === kid))
  if (first === undefined) return refuse('kid_unknown', kid)
  return second === undefined ? first : refuse('kid_ambiguous', kid)
}

export function isRefusalOf(value: VerificationKey | Refusal, reason: Refusal['refused']): boolean {
  return 'refused' in value && value.refused === reason
}
