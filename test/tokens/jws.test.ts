// Whether a JWT is signed by a key (RFC 7515 §5): every bit counts, and a key that cannot be used signs nothing.
import { beforeAll, describe, expect, test } from 'bun:test'
import { readKeySet, type VerificationKey } from '../../src/federation/issuer/key-set.ts'
import { isSignedBy } from '../../src/tokens/jws.ts'
import { createKeyPair, type KeyPair, signToken } from '../support/subject-token.ts'

const pairs: Partial<Record<'ES256' | 'RS256', KeyPair>> = {}
beforeAll(async () => {
  for (const algorithm of ['ES256', 'RS256'] as const) pairs[algorithm] = await createKeyPair(algorithm, algorithm)
})

const keyOf = (jwk: object): VerificationKey => {
  const [key] = readKeySet({ keys: [jwk] })
  if (key === undefined) throw new Error('The set has no key')
  return key
}

describe.each(['ES256', 'RS256'] as const)('%s', (algorithm) => {
  const pairOf = () => pairs[algorithm] as KeyPair

  test('accepts what its key has signed, and nothing that differs in a bit', async () => {
    const token = await signToken(pairOf(), { sub: 's' })
    const key = keyOf(pairOf().publicJwk)
    expect(await isSignedBy(token, algorithm, key)).toBe(true)
    const [header = '', payload = '', signature = ''] = token.split('.')
    const bytes = Buffer.from(signature, 'base64url')
    for (const place of [0, bytes.length >> 1, bytes.length - 1]) {
      const other = Buffer.from(bytes)
      other[place] = (other[place] ?? 0) ^ 1
      expect(await isSignedBy(`${header}.${payload}.${other.toString('base64url')}`, algorithm, key)).toBe(false)
    }
    expect(await isSignedBy(`${header}.${payload.slice(1)}.${signature}`, algorithm, key)).toBe(false)
    for (const none of ['', signature.slice(0, 8)])
      expect(await isSignedBy(`${header}.${payload}.${none}`, algorithm, key)).toBe(false)
  })

  test('accepts nothing from another key', async () => {
    const other = await createKeyPair(algorithm, 'other')
    const token = await signToken(other, { sub: 's' })
    expect(await isSignedBy(token, algorithm, keyOf(pairOf().publicJwk))).toBe(false)
  })

  test('accepts nothing by a key that cannot be imported', async () => {
    const token = await signToken(pairOf(), { sub: 's' })
    const { publicJwk } = pairOf()
    const broken = algorithm === 'ES256' ? { ...publicJwk, y: publicJwk.x } : { ...publicJwk, e: '' }
    expect(await isSignedBy(token, algorithm, keyOf(broken))).toBe(false)
    const cryptoKey = () => Promise.reject(new Error('No such key'))
    expect(await isSignedBy(token, algorithm, { cryptoKey })).toBe(false)
  })
})
