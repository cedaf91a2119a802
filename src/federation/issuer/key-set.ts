// Reads a JWKS (RFC 7517) as keys that can verify subject tokens. It does not know where the set came from.

import { importJWK, type JWK } from 'jose'
import { Fault } from '../../fault.ts'
import { keySetEntriesMax } from '../../limits.ts'
import { hasOptionalStrings, hasStrings, isStringArray } from '../../values/json-members.ts'
import type { SubjectTokenAlgorithm } from '../subject-token/claims.ts'

export type VerificationKey = {
  kid: string | undefined
  algorithm: SubjectTokenAlgorithm
  publicJwk: JWK
  /** Imports the key at first use: a set can hold many keys, and each token uses one. */
  cryptoKey: () => Promise<CryptoKey>
}

/** RFC 7517 §4.3 defines eight. Without a limit, rejecting a set could take a tenth of a second. */
const keyOperationsMax = 32

const optionalTexts = ['kid', 'use', 'alg', 'crv', 'n', 'e', 'x', 'y'] as const

const rsaBitsMin = 2_048
/** A larger modulus only slows verification down. */
const rsaBitsMax = 8_192

/**
 * Marks the keys that sign JWT-SVIDs in a SPIFFE bundle (JWT-SVID standard §6). SPIFFE defines no `alg` for them, so
 * `alg` is ignored.
 */
const spiffeUse = 'jwt-svid'

/**
 * Returns the usable keys of a set: RSA of at least 2048 bits for RS256 and P-256 for ES256, subject to `use`,
 * `key_ops` and `alg`. Ignores keys for other purposes and entries that are not keys; drops private members.
 * @throws Fault `invalid` if it is not a key set, has more than `keySetEntriesMax` entries, or holds no usable key
 */
export function readKeySet(document: unknown): VerificationKey[] {
  const entries = (document as { keys?: unknown } | null)?.keys
  if (!Array.isArray(entries)) throw new Fault('invalid', 'Not a JWKS: it must be an object with a "keys" array')
  if (entries.length > keySetEntriesMax)
    throw new Fault('invalid', `The JWKS has ${entries.length} entries; at most ${keySetEntriesMax} are read`)
  const keys = entries.map(readKey).filter((key) => key !== undefined)
  if (keys.length === 0)
    throw new Fault('invalid', 'The JWKS has no key that can verify RS256 (2048 bits or more) or ES256 (P-256)')
  return keys
}

function readKey(jwk: unknown): VerificationKey | undefined {
  if (!hasStrings(jwk, ['kty']) || !hasOptionalStrings(jwk, optionalTexts)) return undefined
  if (jwk.use !== undefined && jwk.use !== 'sig' && jwk.use !== spiffeUse) return undefined
  if ('key_ops' in jwk && !canVerify(jwk.key_ops)) return undefined
  const { kty, crv, n, e, x, y } = jwk
  const bits = kty === 'RSA' ? modulusBits(n) : 0
  const isRsa = bits >= rsaBitsMin && bits <= rsaBitsMax
  if (!isRsa && !(kty === 'EC' && crv === 'P-256')) return undefined
  const algorithm = isRsa ? 'RS256' : 'ES256'
  if (jwk.use !== spiffeUse && jwk.alg !== undefined && jwk.alg !== algorithm) return undefined
  return keyOf(jwk.kid, algorithm, isRsa ? { kty, n, e } : { kty, crv, x, y })
}

function canVerify(operations: unknown): boolean {
  return isStringArray(operations) && operations.length <= keyOperationsMax && operations.includes('verify')
}

function keyOf(kid: string | undefined, algorithm: SubjectTokenAlgorithm, publicJwk: JWK): VerificationKey {
  let imported: Promise<CryptoKey> | undefined
  const cryptoKey = () => {
    imported ??= importJWK(publicJwk, algorithm) as Promise<CryptoKey>
    return imported
  }
  return { kid, algorithm, publicJwk, cryptoKey }
}

/**
 * Returns a JWKS of exactly these keys, without private members. A SPIFFE bundle document keeps its sequence.
 */
export function writeKeySet(keys: VerificationKey[], spiffeSequence?: number): string {
  return JSON.stringify({ keys: writeKeys(keys), spiffe_sequence: spiffeSequence })
}

export function writeKeys(keys: VerificationKey[]): JWK[] {
  return keys.map(({ kid, algorithm, publicJwk }) => ({
    ...publicJwk,
    ...(kid === undefined ? {} : { kid }),
    alg: algorithm,
  }))
}

/** The `spiffe_sequence` of a SPIFFE bundle document; undefined for other sets. */
export function spiffeSequenceOf(document: unknown): number | undefined {
  return wholeMember(document, 'spiffe_sequence')
}

/** The `spiffe_refresh_hint` of a SPIFFE bundle document in seconds; undefined for other sets. */
export function spiffeRefreshHintOf(document: unknown): number | undefined {
  return wholeMember(document, 'spiffe_refresh_hint')
}

function wholeMember(document: unknown, name: string): number | undefined {
  const value = (document as Record<string, unknown> | null)?.[name]
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
}

const privateNames = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** Whether an entry of a key set has a member of a private or secret key (RFC 7518 §6). */
export function privateMembersIn(jwk: unknown): boolean {
  return typeof jwk === 'object' && jwk !== null && privateNames.some((name) => Object.hasOwn(jwk, name))
}

function modulusBits(n: string | undefined): number {
  const bytes = Buffer.from(n ?? '', 'base64url')
  const start = bytes.findIndex((byte) => byte !== 0)
  const first = bytes[start]
  return first === undefined ? 0 : (bytes.length - start) * 8 - (Math.clz32(first) - 24)
}
