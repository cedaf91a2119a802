// Subject tokens signed by hand, so that a test can break any single bit, and the key pairs that sign them.
import { exportJWK, generateKeyPair, type JWK } from 'jose'

export type KeyPair = { alg: 'RS256' | 'ES256'; kid: string; privateKey: CryptoKey; publicJwk: JWK }
/** An object, or JSON text to put into the token unchanged. */
export type TokenPart = Record<string, unknown> | string

export async function createKeyPair(alg: KeyPair['alg'], kid: string): Promise<KeyPair> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, publicJwk: { ...(await exportJWK(publicKey)), alg, kid, use: 'sig' } }
}

export function encodePart(part: TokenPart | Uint8Array): string {
  if (part instanceof Uint8Array) return Buffer.from(part).toString('base64url')
  return Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')
}

/** Signs `header.payload` unchanged, whatever the header says. The key determines the algorithm. */
export async function signInput(pair: KeyPair, input: string): Promise<string> {
  const algorithm = pair.alg === 'RS256' ? 'RSASSA-PKCS1-v1_5' : { name: 'ECDSA', hash: 'SHA-256' }
  const signature = await crypto.subtle.sign(algorithm, pair.privateKey, Buffer.from(input))
  return `${input}.${Buffer.from(signature).toString('base64url')}`
}

/** A token with the pair's `alg` and `kid` in its header. `header` replaces members; undefined removes one. */
export function signToken(pair: KeyPair, payload: TokenPart, header: TokenPart = {}): Promise<string> {
  const whole = typeof header === 'string' ? header : { alg: pair.alg, kid: pair.kid, typ: 'JWT', ...header }
  return signInput(pair, `${encodePart(whole)}.${encodePart(payload)}`)
}
