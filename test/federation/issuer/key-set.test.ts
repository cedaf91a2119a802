// Which keys of a JWKS may verify (RFC 7517; reference: Issuer keys): RSA from 2048 bits and P-256, for signatures, and their public halves alone.
import { beforeAll, describe, expect, test } from 'bun:test'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { Fault } from '../../../src/fault.ts'
import { readKeySet } from '../../../src/federation/issuer/key-set.ts'

let rsa: JWK
let ec: JWK
let privateRsa: JWK
let privateEc: JWK
beforeAll(async () => {
  const [rsaPair, ecPair] = await Promise.all([
    generateKeyPair('RS256', { extractable: true }),
    generateKeyPair('ES256', { extractable: true }),
  ])
  rsa = await exportJWK(rsaPair.publicKey)
  ec = await exportJWK(ecPair.publicKey)
  privateRsa = await exportJWK(rsaPair.privateKey)
  privateEc = await exportJWK(ecPair.privateKey)
})

/** A modulus of so many bits; no real key is needed to be measured. */
const modulus = (bits: number) => {
  const bytes = Buffer.alloc(Math.ceil(bits / 8), 0xff)
  bytes[0] = 0xff >> (bytes.length * 8 - bits)
  return bytes.toString('base64url')
}
/** The same behind bytes of zeros, which add nothing to it. */
const padded = (zeros: number, bits: number) =>
  Buffer.concat([Buffer.alloc(zeros), Buffer.from(modulus(bits), 'base64url')]).toString('base64url')
const algorithmsOf = (keys: unknown[]) => readKeySet({ keys }).map(({ algorithm }) => algorithm)

describe('a key', () => {
  const rows: [name: string, key: () => object, algorithm: 'RS256' | 'ES256' | undefined][] = [
    ['of RSA', () => rsa, 'RS256'],
    ['of P-256', () => ec, 'ES256'],
    ['of RSA with 2048 bits', () => ({ kty: 'RSA', e: 'AQAB', n: modulus(2_048) }), 'RS256'],
    ['of RSA with 2047 bits', () => ({ kty: 'RSA', e: 'AQAB', n: modulus(2_047) }), undefined],
    ...[1, 128, 129, 130, 255, 1_000].map((zeros): (typeof rows)[number] => [
      `of RSA with 1024 bits behind ${zeros} zeros`,
      () => ({ kty: 'RSA', e: 'AQAB', n: padded(zeros, 1_024) }),
      undefined,
    ]),
    ['of RSA with 2048 bits behind zeros', () => ({ kty: 'RSA', e: 'AQAB', n: padded(129, 2_048) }), 'RS256'],
    ['of RSA with 8192 bits', () => ({ kty: 'RSA', e: 'AQAB', n: modulus(8_192) }), 'RS256'],
    ['of RSA with 8193 bits', () => ({ kty: 'RSA', e: 'AQAB', n: modulus(8_193) }), undefined],
    ['of RSA with 8192 bits behind zeros', () => ({ kty: 'RSA', e: 'AQAB', n: padded(129, 8_192) }), 'RS256'],
    ['of RSA with 16384 bits', () => ({ kty: 'RSA', e: 'AQAB', n: modulus(16_384) }), undefined],
    ['of RSA without a modulus', () => ({ kty: 'RSA', e: 'AQAB' }), undefined],
    ['of P-384', () => ({ ...ec, crv: 'P-384' }), undefined],
    ['of secp256k1', () => ({ ...ec, crv: 'secp256k1' }), undefined],
    ['of Ed25519', () => ({ kty: 'OKP', crv: 'Ed25519', x: ec.x }), undefined],
    ['that is a shared secret', () => ({ kty: 'oct', k: 'c2VjcmV0', alg: 'HS256' }), undefined],
    ['for encryption', () => ({ ...rsa, use: 'enc' }), undefined],
    ['for signatures', () => ({ ...rsa, use: 'sig' }), 'RS256'],
    ['with key_ops verify', () => ({ ...ec, key_ops: ['verify'] }), 'ES256'],
    ['with more key_ops than there are', () => ({ ...ec, key_ops: Array(33).fill('verify') }), undefined],
    ['with key_ops without verify', () => ({ ...ec, key_ops: ['sign'] }), undefined],
    ['with no key_ops at all', () => ({ ...ec, key_ops: [] }), undefined],
    ['with its own alg', () => ({ ...ec, alg: 'ES256' }), 'ES256'],
    ['with another alg', () => ({ ...rsa, alg: 'RS512' }), undefined],
    ['with the alg of another type', () => ({ ...ec, alg: 'RS256' }), undefined],
    ['with the alg of encryption', () => ({ ...rsa, alg: 'RSA-OAEP' }), undefined],
    ['of a SPIFFE bundle for JWT-SVIDs', () => ({ ...ec, use: 'jwt-svid' }), 'ES256'],
    ['of RSA in a SPIFFE bundle for JWT-SVIDs', () => ({ ...rsa, use: 'jwt-svid' }), 'RS256'],
    ['for JWT-SVIDs with an alg that SPIFFE does not define', () => ({ ...ec, use: 'jwt-svid', alg: 'EC' }), 'ES256'],
    ['for JWT-SVIDs on P-384', () => ({ ...ec, crv: 'P-384', use: 'jwt-svid' }), undefined],
    ['for JWT-SVIDs in capitals', () => ({ ...ec, use: 'JWT-SVID' }), undefined],
    ['of a SPIFFE bundle for X.509-SVIDs', () => ({ ...ec, use: 'x509-svid' }), undefined],
    ['of a SPIFFE bundle for WIT-SVIDs', () => ({ ...ec, use: 'wit-svid' }), undefined],
    ['whose kid is a number', () => ({ ...ec, kid: 1 }), undefined],
    ['without kty', () => ({ ...ec, kty: undefined }), undefined],
    ['that is empty', () => ({}), undefined],
  ]
  for (const [name, key, algorithm] of rows) {
    test(`${name} ${algorithm === undefined ? 'is passed over' : `verifies ${algorithm}`}`, () => {
      const beside = { ...ec, kid: 'beside' }
      expect(readKeySet({ keys: [key(), beside] }).map((found) => [found.kid, found.algorithm])).toEqual([
        ...(algorithm === undefined
          ? []
          : [[(key() as JWK).kid, algorithm] as [string | undefined, 'RS256' | 'ES256']]),
        ['beside', 'ES256'],
      ])
    })
  }

  test('with private members verifies and cannot sign or be read', async () => {
    for (const jwk of [privateRsa, privateEc]) {
      const [key] = readKeySet({ keys: [jwk] })
      const imported = await key?.cryptoKey()
      expect(imported?.type).toBe('public')
      expect(imported?.usages).toEqual(['verify'])
      expect(JSON.stringify(key)).not.toContain(String(jwk.d))
    }
  })

  test('is imported once, at its first use', async () => {
    const [key] = readKeySet({ keys: [ec] })
    expect(key?.cryptoKey()).toBe(key?.cryptoKey() as never)
    const [broken] = readKeySet({ keys: [{ ...ec, y: ec.x }] })
    await expect(broken?.cryptoKey()).rejects.toThrow()
  })
})

describe('a set', () => {
  test('keeps the order of its keys', () => expect(algorithmsOf([rsa, ec, rsa])).toEqual(['RS256', 'ES256', 'RS256']))

  test('passes over what is no key beside the keys', () =>
    expect(algorithmsOf([null, 1, 'x', [], rsa, { kty: 1 }])).toEqual(['RS256']))

  test('may have 2,000 entries', () => expect(algorithmsOf([...Array(1_999).fill({}), ec])).toEqual(['ES256']))

  const refused: [name: string, document: unknown][] = [
    ['more entries than are read', { keys: Array(2_001).fill({}) }],
    ['nothing', undefined],
    ['a text', 'keys'],
    ['a list', []],
    ['an object without keys', {}],
    ['keys that are no list', { keys: {} }],
    ['no keys', { keys: [] }],
    ['keys that are no objects', { keys: ['x'] }],
    ['only keys that cannot verify', { keys: [{ kty: 'oct', k: 'x' }] }],
    ['an error of the issuer', { error: 'not_found' }],
  ]
  for (const [name, document] of refused) {
    test(`of ${name} is refused in a sentence`, () => {
      expect(() => readKeySet(document)).toThrow(Fault)
      expect(() => readKeySet(document)).toThrow(/JWKS/)
    })
  }
})
