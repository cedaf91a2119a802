// Checks a subject token before any policy rule: its header, claim types, times and lengths (reference: Subject token).
import { claimCharactersMax, numericDateMax, scopesEntriesMax } from '../../limits.ts'
import type { JsonObject, JwtText } from '../../tokens/jwt-text.ts'
import { isLonger } from '../../values/characters.ts'
import { isStringArray } from '../../values/json-members.ts'
import { type Refusal, refuse } from './refusal.ts'
import { describeAhead, describeExpiry } from './refusal-detail.ts'

export const subjectTokenAlgorithms = ['RS256', 'ES256'] as const
export type SubjectTokenAlgorithm = (typeof subjectTokenAlgorithms)[number]

export type SubjectToken = {
  algorithm: SubjectTokenAlgorithm
  kid: string | undefined
  issuer: string
  subject: string
  audience: string[]
  /** `nbf` and `iat`, in seconds since 1970 UTC. */
  notBefore?: number | undefined
  issuedAt?: number | undefined
  payload: JsonObject
}

/**
 * Checks header and payload before the signature, because later steps rely on these types. It never reads header
 * members that can carry a key (`jwk`, `jku`, `x5c`, `x5u`). It refuses `crit` and `b64`, which change what a signature
 * covers (RFC 7515 §4.1.11, RFC 7797 §7).
 */
export function narrowSubjectToken({ header, payload, hasDuplicateMembers }: JwtText): SubjectToken | Refusal {
  if (hasDuplicateMembers) return refuse('token_duplicate_member')
  if ('crit' in header || 'b64' in header) return refuse('token_header', 'crit')
  const { kid } = header
  if (kid !== undefined && typeof kid !== 'string') return refuse('token_header', 'kid')
  const algorithm = subjectTokenAlgorithms.find((name) => name === header.alg)
  if (algorithm === undefined) return refuse('token_algorithm', JSON.stringify(header.alg)?.slice(0, 64))

  const { iss, sub, aud, nbf, iat } = payload
  if (typeof iss !== 'string' || iss === '') return refuse('token_claim_type', 'iss')
  if (typeof sub !== 'string' || sub === '') return refuse('token_claim_type', 'sub')
  const audience = typeof aud === 'string' ? [aud] : aud
  if (!isStringArray(audience)) return refuse('token_claim_type', 'aud')
  if (nbf !== undefined && !isNumericDate(nbf)) return refuse('token_claim_type', 'nbf')
  if (iat !== undefined && !isNumericDate(iat)) return refuse('token_claim_type', 'iat')
  return { algorithm, kid, issuer: iss, subject: sub, audience, notBefore: nbf, issuedAt: iat, payload }
}

/** The time settings of an issuer (reference: Issuer). */
export type IssuerTimes = { clockSkewSeconds: number; maxTokenAgeSeconds: number | null }

/**
 * Checks the times; `now` is in milliseconds. `exp` must be at least one second ahead, without leeway, because one
 * second is the shortest lifetime of an access token. `nbf` and `iat` must not be further ahead than the issuer's clock
 * skew. `exp` must not exceed `iat` by more than the issuer allows.
 */
export function checkTimes(
  { payload: { exp }, notBefore, issuedAt }: Pick<SubjectToken, 'payload' | 'notBefore' | 'issuedAt'>,
  now: number,
  { clockSkewSeconds, maxTokenAgeSeconds }: IssuerTimes,
): Refusal | undefined {
  if (!isNumericDate(exp)) return refuse('exp_invalid')
  if (secondsLeft({ exp }, now) < 1) return refuse('expired', describeExpiry(exp, now))
  const ahead = (time: number | undefined) => time !== undefined && time > now / 1_000 + clockSkewSeconds
  const describe = (claim: string, time = 0) => describeAhead(claim, time, now, clockSkewSeconds)
  if (ahead(notBefore)) return refuse('not_yet_valid', describe('nbf', notBefore))
  if (ahead(issuedAt)) return refuse('issued_in_future', describe('iat', issuedAt))
  if (maxTokenAgeSeconds === null) return undefined
  if (issuedAt === undefined) return refuse('token_age_unknown')
  const age = exp - issuedAt
  return age > maxTokenAgeSeconds ? refuse('token_age_too_long', `${age} s from iat to exp`) : undefined
}

/** Returns the whole seconds for which a checked subject token is still valid. */
export function secondsLeft(payload: JsonObject, now: number): number {
  return Math.floor((payload.exp as number) - now / 1_000)
}

/** Checks lengths in Unicode code points, before any rule of the policy (reference: Subject token). */
export function checkLengths({ subject, audience, payload }: SubjectToken): Refusal | undefined {
  if (isTooLong(subject)) return refuse('claim_too_long', 'sub')
  if (audience.some(isTooLong)) return refuse('claim_too_long', 'aud')
  const { scopes } = payload
  if (!Array.isArray(scopes)) return undefined
  if (scopes.length > scopesEntriesMax) return refuse('claim_too_long', 'scopes: too many entries')
  if (scopes.some((scope) => typeof scope === 'string' && isTooLong(scope))) return refuse('claim_too_long', 'scopes')
  return undefined
}

function isTooLong(text: string): boolean {
  return isLonger(text, claimCharactersMax)
}

function isNumericDate(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 && value <= numericDateMax
}
