// A key set that an admin pastes: public keys alone, and no larger than one that is fetched.
import { describe, expect, test } from 'bun:test'
import { readPastedKeySet } from '../../../src/admin/issuers/pasted-key-set.ts'
import { createKeyPair } from '../../support/subject-token.ts'

const { publicJwk } = await createKeyPair('ES256', 'es')

describe('a set is refused that holds, beside a good key,', () => {
  const secrets: [name: string, key: object][] = [
    ['a shared secret', { kty: 'oct', k: 'c2VjcmV0', alg: 'HS256' }],
    ...['d', 'p', 'q', 'dp', 'dq', 'qi'].map((member): (typeof secrets)[number] => [
      `an RSA key with ${member}`,
      { kty: 'RSA', n: 'AQAB', e: 'AQAB', [member]: 'AQAB' },
    ]),
    ['a private EC key', { ...publicJwk, d: 'AQAB' }],
    ['something unknown with a secret in it', { other: [{ k: 'AQAB' }] }],
  ]
  for (const [name, key] of secrets) {
    test(name, () => {
      for (const keys of [
        [publicJwk, key],
        [key, publicJwk],
      ])
        expect(() => readPastedKeySet(JSON.stringify({ keys }))).toThrow('contains a private or secret key')
      expect(() => readPastedKeySet(JSON.stringify({ keys: [publicJwk] }, null, 2))).not.toThrow()
      expect(() => readPastedKeySet(JSON.stringify({ keys: [publicJwk], beside: key }, null, 2))).toThrow('secret')
    })
  }
})

describe('a set may have 262,144 bytes and nothing more,', () => {
  const ofBytes = (bytes: number, character: string) => {
    const set = (fill: string) => JSON.stringify({ keys: [publicJwk], fill })
    const left = bytes - Buffer.byteLength(set(''))
    const size = Buffer.byteLength(character)
    return set(character.repeat(Math.floor(left / size)) + 'x'.repeat(left % size))
  }
  for (const [name, character] of [
    ['of ASCII', 'x'],
    ['of three bytes a character', '€'],
  ] as const) {
    test(name, () => {
      expect(Buffer.byteLength(ofBytes(262_144, character))).toBe(262_144)
      expect(readPastedKeySet(ofBytes(262_144, character))).toHaveLength(1)
      expect(() => readPastedKeySet(ofBytes(262_145, character))).toThrow('must be at most 262144 bytes')
    })
  }
})
