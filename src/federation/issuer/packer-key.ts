// The key pair of a packer, as a file and as the public half that a bundle signer has.
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose'
import { type BundleSigner, bundleAlgorithms } from '../../../db/schema/bundle-schema.ts'
import { Fault } from '../../fault.ts'
import { hasStrings } from '../../values/json-members.ts'
import { keyBundleType } from './key-bundle.ts'

export type BundleAlgorithm = BundleSigner['algorithm']
/** `keyId` is the SHA-256 thumbprint of the public key (RFC 7638). */
export type SignerKey = { algorithm: BundleAlgorithm; keyId: string; publicJwk: JWK }
export type PackerKey = SignerKey & { privateJwk: JWK }

export async function createPackerKey(algorithm: BundleAlgorithm): Promise<PackerKey> {
  const options = { extractable: true, ...(algorithm === 'EdDSA' ? { crv: 'Ed25519' } : {}) }
  const { privateKey } = await generateKeyPair(algorithm, options)
  return readPackerKey(await exportJWK(privateKey))
}

/** Reads the private key of a packer. Throws a fault `invalid`. */
export async function readPackerKey(jwk: unknown): Promise<PackerKey> {
  const publicKey = await readSignerKey(withoutPrivate(jwk))
  if (!hasStrings(jwk, ['d'])) throw new Fault('invalid', 'The packer key has no private half: use the file of keygen')
  const privateJwk: JWK = { ...publicKey.publicJwk, d: jwk.d }
  try {
    await importJWK(privateJwk, publicKey.algorithm)
  } catch (cause) {
    throw new Fault('invalid', 'The packer key cannot be read: make a new one with latchkey jwks keygen', { cause })
  }
  return { ...publicKey, privateJwk }
}

/** Reads a public key: Ed25519 for EdDSA, P-256 for ES256. Throws a fault `invalid`, also for a private key. */
export async function readSignerKey(jwk: unknown): Promise<SignerKey> {
  if (hasStrings(jwk, ['d']))
    throw new Fault(
      'invalid',
      'This is the private key of the packer: give the public one, which keygen wrote beside it',
    )
  const found = narrowKey(jwk)
  try {
    if (found === undefined) throw new Error('Not a key of Ed25519 or P-256')
    await importJWK(found.publicJwk, found.algorithm)
    return { ...found, keyId: await calculateJwkThumbprint(found.publicJwk, 'sha256') }
  } catch (cause) {
    throw new Fault('invalid', 'The key must be a public JWK of Ed25519 or P-256, as latchkey jwks keygen writes it', {
      cause,
    })
  }
}

function narrowKey(jwk: unknown): Omit<SignerKey, 'keyId'> | undefined {
  if (!hasStrings(jwk, ['kty', 'crv', 'x'])) return undefined
  const { kty, crv, x } = jwk
  if (kty === 'OKP' && crv === 'Ed25519') return { algorithm: 'EdDSA', publicJwk: { kty, crv, x } }
  if (kty === 'EC' && crv === 'P-256' && hasStrings(jwk, ['y']))
    return { algorithm: 'ES256', publicJwk: { kty, crv, x, y: jwk.y } }
  return undefined
}

function withoutPrivate(jwk: unknown): unknown {
  return typeof jwk === 'object' && jwk !== null ? { ...jwk, d: undefined } : jwk
}

/** The claims of a bundle. Times are NumericDates. */
export type BundleClaims = {
  iss: string
  sub: string
  iat: number
  exp: number
  seq: number
  keys: JWK[]
  refresh_hint: number
  evidence: Record<string, string>
}

/** Returns the compact JWS of a bundle. */
export async function signKeyBundle(claims: BundleClaims, packer: PackerKey): Promise<string> {
  const key = await importJWK(packer.privateJwk, packer.algorithm)
  return new SignJWT({ ...claims })
    .setProtectedHeader({ alg: packer.algorithm, typ: keyBundleType, kid: packer.keyId })
    .sign(key)
}

export function isBundleAlgorithm(text: string): text is BundleAlgorithm {
  return bundleAlgorithms.some((algorithm) => algorithm === text)
}
