// A signed bundle of the keys of one issuer: a compact JWS of type `jwk-set+jwt` (manual: air gap). Reads and checks it
// without clock, network and database.
import { compactVerify, importJWK, type JWK } from 'jose'
import type { BundleSigner } from '../../../db/schema/bundle-schema.ts'
import { numericDateMax, urlCharactersMax } from '../../limits.ts'
import { type JsonObject, parseJwtText } from '../../tokens/jwt-text.ts'
import { type BundleRefusal, refuseBundle } from './bundle-refusal.ts'
import { privateMembersIn, readKeySet, type VerificationKey } from './key-set.ts'

export const keyBundleType = 'jwk-set+jwt'

const keyBundleBytesMax = 64 * 1024
/** Bundles in a file, whose text must fit into the input of an admin operation. */
export const keyBundlesAtOnceMax = 200
export const keyBundleFileCharactersMax = 384 * 1024

/** Times are in milliseconds since 1970. `evidence` says where the packer found the keys. */
export type KeyBundle = {
  packer: string
  issuerUrl: string
  issuedAt: number
  expiresAt: number
  sequence: number
  refreshHintSeconds: number | null
  keys: VerificationKey[]
  evidence: Record<string, string>
}

export type KnownSigner = Pick<BundleSigner, 'name' | 'keyId' | 'algorithm' | 'publicJwk'>

/** Returns the bundles of a file: one JWS, or `{ "bundles": ["eyJ…", …] }`. */
export function splitBundleFile(text: string): string[] | BundleRefusal {
  const trimmed = text.trim()
  if (!trimmed.startsWith('{')) return trimmed === '' ? emptyFile : [trimmed]
  const members = parseObject(trimmed)
  const bundles = members?.bundles
  if (!Array.isArray(bundles) || bundles.some((each) => typeof each !== 'string'))
    return refuseBundle(
      'bundle_file_malformed',
      'The file is not whole JSON with a list of texts named "bundles": copy it again',
    )
  if (bundles.length > keyBundlesAtOnceMax)
    return refuseBundle('bundle_file_malformed', `The file has more than ${keyBundlesAtOnceMax} bundles: split it`)
  return bundles.length === 0 ? emptyFile : (bundles as string[])
}

const emptyFile = refuseBundle('bundle_file_malformed', 'The file has no bundle')

/**
 * Verifies the form and the signature of a bundle by the signer that its `kid` names, and then reads its claims and keys.
 * Times, sequence and issuer are not compared here.
 */
export async function readKeyBundle<Signer extends KnownSigner>(
  text: string,
  findSigner: (keyId: string) => Signer | undefined,
): Promise<{ bundle: KeyBundle; signer: Signer } | BundleRefusal> {
  if (text.length > keyBundleBytesMax)
    return refuseBundle('bundle_too_large', `The bundle has more than ${keyBundleBytesMax} bytes`)
  const jwt = parseJwtText(text)
  if (jwt === undefined || jwt.hasDuplicateMembers || !isSignatureWhole(text)) return damaged
  const { typ, alg, kid, crit } = jwt.header
  // No extension is understood here; one of them, b64, would change how the payload is read (RFC 7797 §7).
  if (typ !== keyBundleType || typeof kid !== 'string' || crit !== undefined)
    return refuseBundle('bundle_malformed', `The bundle is not a JWS with the type ${keyBundleType} and a kid`)
  const signer = findSigner(kid)
  if (signer === undefined)
    return refuseBundle(
      'bundle_signer_unknown',
      `The bundle is signed by the key ${JSON.stringify(kid.slice(0, 64))}, which belongs to no bundle signer`,
    )
  if (alg !== signer.algorithm || !(await isSigned(text, signer)))
    return refuseBundle(
      'bundle_signature_invalid',
      `The signature of the bundle is not by the key of the bundle signer ${JSON.stringify(signer.name)}: the bundle was changed or forged`,
    )
  const bundle = readClaims(jwt.payload)
  return 'refused' in bundle ? bundle : { bundle, signer }
}

const damaged = refuseBundle(
  'bundle_malformed',
  'The bundle is not a whole JWS: it was cut short or changed; copy it again',
)

/** A signature of EdDSA (Ed25519) or ES256 has 64 bytes. */
function isSignatureWhole(text: string): boolean {
  return Buffer.from(text.slice(text.lastIndexOf('.') + 1), 'base64url').length === 64
}

async function isSigned(text: string, { publicJwk, algorithm }: KnownSigner): Promise<boolean> {
  try {
    const key = await importJWK(JSON.parse(publicJwk) as JWK, algorithm)
    await compactVerify(text, key, { algorithms: [algorithm] })
    return true
  } catch {
    return false
  }
}

function readClaims(payload: JsonObject): KeyBundle | BundleRefusal {
  const { iat, exp, seq, refresh_hint: refreshHint } = payload
  const { iss, sub, keys: entries } = payload
  const isBundle = isText(iss) && isText(sub) && isDate(iat) && isDate(exp) && isWhole(seq) && Array.isArray(entries)
  if (!isBundle) return refuseBundle('bundle_malformed', 'The bundle lacks iss, sub, iat, exp, seq or keys')
  if (entries.some(privateMembersIn))
    return refuseBundle(
      'bundle_private_members',
      'The bundle contains a private key: its issuer must replace that key, since it is no longer secret',
    )
  const keys = readKeys(payload)
  if ('refused' in keys) return keys
  return {
    packer: iss.slice(0, 128),
    issuerUrl: sub,
    issuedAt: iat * 1_000,
    expiresAt: exp * 1_000,
    sequence: seq,
    refreshHintSeconds: isWhole(refreshHint) ? refreshHint : null,
    keys,
    evidence: readEvidence(payload.evidence),
  }
}

function readKeys(payload: JsonObject): VerificationKey[] | BundleRefusal {
  try {
    return readKeySet(payload)
  } catch (error) {
    return refuseBundle('bundle_keys_unusable', (error as Error).message)
  }
}

const evidenceNames = ['fetched_at', 'discovery_url', 'jwks_url', 'tls_certificate_sha256']

function readEvidence(value: unknown): Record<string, string> {
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return Object.fromEntries(
    members.filter(
      (member): member is [string, string] =>
        evidenceNames.includes(member[0]) && typeof member[1] === 'string' && member[1].length <= urlCharactersMax,
    ),
  )
}

/** What a bundle is held against. Times are in milliseconds; `lastSequence` is that of the same key and issuer. */
export type BundleExpectation = { now: number; clockSkewSeconds: number; lastSequence: number | undefined }

/** Compares times and sequence. */
export function checkKeyBundle(
  { issuedAt, expiresAt, sequence }: KeyBundle,
  { now, clockSkewSeconds, lastSequence }: BundleExpectation,
): BundleRefusal | undefined {
  if (issuedAt > now + clockSkewSeconds * 1_000)
    return refuseBundle(
      'bundle_issued_in_future',
      `The bundle was made at ${timeText(issuedAt)}, which is in the future: compare the clocks of this server and of the packer`,
    )
  if (expiresAt <= now)
    return refuseBundle('bundle_expired', `The bundle expired at ${timeText(expiresAt)}: bring a newer one`)
  if (lastSequence !== undefined && sequence <= lastSequence)
    return refuseBundle(
      'bundle_replayed',
      `The bundle has the sequence ${sequence}, and ${lastSequence} was imported before: bring a newer one`,
    )
  return undefined
}

function timeText(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isDate(value: unknown): value is number {
  return isWhole(value) && value <= numericDateMax
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as JsonObject) : undefined
  } catch {
    return undefined
  }
}
