// The cache of verified access tokens: what it remembers, and for how long.
import { expect, test } from 'bun:test'
import { createTokenCache } from '../../src/keys/token-cache.ts'
import type { SigningKey } from '../../src/tokens/signing-keys.ts'

const expiresAt = 1_800_000_900_000
const issuedAt = expiresAt - 900_000
const token = (id: string) => ({
  accessToken: {
    keyId: 'key',
    subject: 's',
    id,
    policyId: 'policy',
    issuerId: 'issuer',
    allowedModels: null,
    allowedPresets: null,
    allowed: { models: undefined, presets: undefined },
  },
  kid: 'signer',
  expiresAt,
})
const signer = { kid: 'signer' } as SigningKey
const inForce = { byKid: () => signer }

test('a token is found by its exact text alone', () => {
  const cache = createTokenCache(inForce)
  cache.keep('a.b.c', token('1'))
  expect(cache.find('a.b.c', issuedAt)).toEqual(token('1').accessToken)
  for (const other of ['a.b.C', 'a.b.c=', ' a.b.c', 'a.b.', '']) expect(cache.find(other, issuedAt)).toBeUndefined()
})

test('a token is forgotten in the moment in which it expires, for good', () => {
  const cache = createTokenCache(inForce)
  cache.keep('a.b.c', token('1'))
  expect(cache.find('a.b.c', expiresAt - 1)).toBeDefined()
  expect(cache.find('a.b.c', expiresAt)).toBeUndefined()
  expect(cache.find('a.b.c', expiresAt - 1)).toBeUndefined()
})

test('a token is forgotten when its signing key is retired', () => {
  const asked: [string, number][] = []
  let key: SigningKey | undefined = signer
  const cache = createTokenCache({
    byKid: (kid, now) => {
      asked.push([kid, now])
      return key
    },
  })
  cache.keep('a.b.c', token('1'))
  expect(cache.find('a.b.c', issuedAt + 7)).toBeDefined()
  key = undefined
  expect(cache.find('a.b.c', issuedAt + 8)).toBeUndefined()
  expect(asked).toEqual([
    ['signer', issuedAt + 7],
    ['signer', issuedAt + 8],
  ])
})

test('the token that was used longest ago is dropped first when there are too many', () => {
  const cache = createTokenCache(inForce, 2)
  for (const text of ['1', '2', '2']) cache.keep(text, token(text))
  expect(cache.find('1', issuedAt)?.id).toBe('1')
  cache.keep('3', token('3'))
  expect(['1', '2', '3'].map((text) => cache.find(text, issuedAt)?.id)).toEqual(['1', undefined, '3'])
})
