// Mints and verifies access tokens (reference: Access token; RFC 9068). It does not know why one is issued or whether its key is usable.
import { errors, jwtVerify } from 'jose'
import { accessTokenClockStepSecondsMax, accessTokenLifetimeSecondsMax } from '../limits.ts'
import { hasStrings, isStringArray } from '../values/json-members.ts'
import { signJwt } from './jws.ts'
import { isCanonicalBase64url } from './jwt-text.ts'
import type { SigningKeys } from './signing-keys.ts'

/** The models and presets that a bearer may use, as patterns; null allows all. */
export type Bounds = { allowedModels: string[] | null; allowedPresets: string[] | null }
export type AccessTokenSubject = {
  subject: string
  keyId: string
  policyId: string
  issuerId: string
  /** Whose usage it is; undefined if that is the subject. */
  attribution?: string | undefined
} & Bounds
export type IssuedAccessToken = { text: string; id: string; lifetimeSeconds: number; expiresAt: number }

/** The claims that an inference request uses. Policy and issuer are for reports only (reference: Access token). */
export type AccessTokenClaims = AccessTokenSubject & { id: string }

/**
 * Signs a token of `lifetimeSeconds` (whole, at least 1) from `now` (milliseconds). `expiresAt` is in milliseconds.
 */
export async function mintAccessToken(
  { signingKeys, baseUrl }: { signingKeys: SigningKeys; baseUrl: string },
  bearer: AccessTokenSubject,
  lifetimeSeconds: number,
  now: number,
): Promise<IssuedAccessToken> {
  const key = signingKeys.current(now)
  const iat = Math.floor(now / 1_000)
  const exp = iat + lifetimeSeconds
  const id = crypto.randomUUID()
  // One object without copies. Members that are undefined are not in the token.
  const claims = {
    iss: baseUrl,
    aud: baseUrl,
    sub: bearer.subject,
    client_id: bearer.keyId,
    scope: 'inference',
    iat,
    exp,
    jti: id,
    federation_policy_id: bearer.policyId,
    federation_issuer_id: bearer.issuerId,
    attribution: bearer.attribution,
    authorization_details: authorizationOf(bearer),
  }
  const text = await signJwt({ alg: 'ES256', typ: 'at+jwt', kid: key.kid }, claims, key)
  return { text, id, lifetimeSeconds, expiresAt: exp * 1_000 }
}

/**
 * The policy's bounds are in the token (RFC 9396 §9.1), because the policy is not read when a request is authorized (reference: Access token).
 * Undefined without bounds.
 */
function authorizationOf({ allowedModels, allowedPresets }: Bounds): object[] | undefined {
  if (allowedModels === null && allowedPresets === null) return undefined
  return [{ type: authorizationType, models: allowedModels ?? undefined, presets: allowedPresets ?? undefined }]
}

/** The reverse of `authorizationOf`; undefined for details that it does not write. */
function allowedIn(details: unknown): Bounds | undefined {
  if (details === undefined) return { allowedModels: null, allowedPresets: null }
  if (!Array.isArray(details) || details.length !== 1) return undefined
  const { type, models, presets } = Object(details[0]) as Record<string, unknown>
  const isOptionalList = (value: unknown) => value === undefined || isStringArray(value)
  if (type !== authorizationType || !isOptionalList(models) || !isOptionalList(presets)) return undefined
  return { allowedModels: models ?? null, allowedPresets: presets ?? null }
}

/** `expiresAt` in milliseconds; `kid` is the key that signed it. */
export type VerifiedAccessToken = { claims: AccessTokenClaims; kid: string; expiresAt: number }

const authorizationType = 'inference'
const claimNames = ['sub', 'client_id', 'jti', 'federation_policy_id', 'federation_issuer_id'] as const

/** Why a token is not valid. The last two were valid at another time. */
export type AccessTokenObjection = 'token_invalid' | 'token_expired' | 'token_from_future'

/**
 * Whether a token that expires at `expiresAt` can be valid now, both in milliseconds. No token is issued with more than the maximum lifetime,
 * so one with more left was issued before the clock was set back, and would be valid for too long.
 */
export function isWithinLife(expiresAt: number, now: number): boolean {
  return expiresAt > now && !isFromFuture(expiresAt, now)
}

function isFromFuture(expiresAt: number, now: number): boolean {
  return expiresAt - now > (accessTokenLifetimeSecondsMax + accessTokenClockStepSecondsMax) * 1_000
}

/** The claims of a valid token, or the objection to it: wrong signer, type or audience, or expired. */
export async function verifyAccessToken(
  { signingKeys, baseUrl }: { signingKeys: SigningKeys; baseUrl: string },
  text: string,
  now: number,
): Promise<VerifiedAccessToken | AccessTokenObjection> {
  // The signature covers the text before it. The signature itself has several spellings, of which RFC 7515 §2 allows one.
  if (!isCanonicalBase64url(text.slice(text.lastIndexOf('.') + 1))) return 'token_invalid'
  try {
    const { payload, protectedHeader } = await jwtVerify(
      text,
      // A local JWKS of jose is a fixed set; which of our keys are in force depends on the time.
      ({ kid }) => {
        const key = signingKeys.byKid(kid ?? '', now)
        if (key === undefined) throw new Error('The signing key is unknown or retired')
        return key.publicKey
      },
      {
        algorithms: ['ES256'],
        typ: 'at+jwt',
        issuer: baseUrl,
        audience: baseUrl,
        requiredClaims: ['exp', 'iat'],
        currentDate: new Date(now),
      },
    )
    const expiresAt = Number(payload.exp) * 1_000
    if (isFromFuture(expiresAt, now)) return 'token_from_future'
    const allowed = allowedIn(payload.authorization_details)
    const { attribution } = payload
    if (payload.scope !== 'inference' || !hasStrings(payload, claimNames) || allowed === undefined)
      return 'token_invalid'
    if (attribution !== undefined && typeof attribution !== 'string') return 'token_invalid'
    return {
      claims: {
        keyId: payload.client_id,
        subject: payload.sub,
        id: payload.jti,
        policyId: payload.federation_policy_id,
        issuerId: payload.federation_issuer_id,
        attribution,
        ...allowed,
      },
      kid: protectedHeader.kid ?? '',
      expiresAt,
    }
  } catch (error) {
    // jose verifies the signature before the claims.
    return error instanceof errors.JWTExpired ? 'token_expired' : 'token_invalid'
  }
}
