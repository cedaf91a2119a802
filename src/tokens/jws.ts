// Signs and verifies the text of a JWT (RFC 7515 §5) without parsing it again. It does not know claims.
import { KeyObject, sign, verify } from 'node:crypto'
import { isNodeCryptoFast } from '../runtime/native-crypto.ts'
import { isLoneSignature, runOnPool } from './signature-load.ts'

const parameters = {
  RS256: { name: 'RSASSA-PKCS1-v1_5' },
  ES256: { name: 'ECDSA', hash: 'SHA-256' },
} as const
/** The algorithms that subject tokens may be signed with. */
export type JwsAlgorithm = keyof typeof parameters
/** Both algorithms hash with SHA-256; JWS has the two numbers of an ECDSA signature side by side (RFC 7518 §3.4). */
const digest = 'SHA256'
const dsaEncoding = 'ieee-p1363'
const encoder = new TextEncoder()

/**
 * Whether the signature of a JWT is valid. The text must be one that `parseJwtText` accepts, and the key must fit the algorithm. With a key
 * that cannot be imported, no signature is valid.
 */
export async function isSignedBy(
  text: string,
  algorithm: JwsAlgorithm,
  { cryptoKey }: { cryptoKey: () => Promise<CryptoKey> },
): Promise<boolean> {
  const end = text.lastIndexOf('.')
  const signature = Buffer.from(text.slice(end + 1), 'base64url')
  const data = encoder.encode(text.slice(0, end))
  try {
    const key = await cryptoKey()
    if (isNodeCryptoFast && isLoneSignature())
      return verify(digest, data, { key: keyObjectOf(key), dsaEncoding }, signature)
    return await runOnPool(() => crypto.subtle.verify(parameters[algorithm], key, signature, data))
  } catch {
    return false
  }
}

/** The two forms of one private key, for `node:crypto` and WebCrypto. */
export type PrivateKey = { privateKey: CryptoKey; privateKeyObject: KeyObject }

/** A JWT signed with ES256; at once, also in a crowd: the way to the pool and back costs a third as much as the signature. */
export async function signJwt(
  header: object,
  payload: object,
  { privateKey, privateKeyObject }: PrivateKey,
): Promise<string> {
  const input = `${encode(header)}.${encode(payload)}`
  const data = encoder.encode(input)
  const signature = isNodeCryptoFast
    ? sign(digest, data, { key: privateKeyObject, dsaEncoding })
    : Buffer.from(await crypto.subtle.sign(parameters.ES256, privateKey, data))
  return `${input}.${signature.toString('base64url')}`
}

/** Made at first use, since a key set may hold many keys. */
const keyObjects = new WeakMap<CryptoKey, KeyObject>()

function keyObjectOf(key: CryptoKey): KeyObject {
  const known = keyObjects.get(key) ?? KeyObject.from(key)
  keyObjects.set(key, known)
  return known
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
