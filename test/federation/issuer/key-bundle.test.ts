// Signed bundles as rules: what is packed is read back, and a change of any part is refused.
import { beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { CompactSign, importJWK } from 'jose'
import { checkKeyBundle, readKeyBundle, splitBundleFile } from '../../../src/federation/issuer/key-bundle.ts'
import { expiryWarningOf, refuseExpired } from '../../../src/federation/issuer/key-expiry.ts'
import { packKeys } from '../../../src/federation/issuer/pack-keys.ts'
import {
  createPackerKey,
  type PackerKey,
  readPackerKey,
  readSignerKey,
} from '../../../src/federation/issuer/packer-key.ts'
import { json } from '../../../src/http/reply.ts'
import { createPacker, daySeconds, type TestPacker } from '../../support/bundles.ts'
import { createKeyPair, type KeyPair } from '../../support/subject-token.ts'

const issuerUrl = 'https://idp.example.com'
const now = 1_800_000_000_000
let pairs: KeyPair[]
let packers: TestPacker[]
beforeAll(async () => {
  pairs = await Promise.all([createKeyPair('ES256', 'one'), createKeyPair('ES256', 'two')])
  packers = await Promise.all((['EdDSA', 'ES256'] as const).map((each) => createPacker(issuerUrl, () => now, each)))
})

const signerOf = ({ key }: TestPacker) => ({
  name: 'border',
  keyId: key.keyId,
  algorithm: key.algorithm,
  publicJwk: JSON.stringify(key.publicJwk),
})
const read = (text: string) =>
  readKeyBundle(text, (keyId) => packers.map(signerOf).find((signer) => signer.keyId === keyId))

/** An issuer that publishes a document, as the packer fetches it. */
async function packFrom(document: object, key: PackerKey, changed: object = {}) {
  const fetch = async (url: string) =>
    json(200, url.endsWith('/keys') ? document : { issuer: issuerUrl, jwks_uri: `${issuerUrl}/keys` })
  const outbound = {
    fetch,
    resolve: async () => [],
    usesProxy: false,
    insecureIssuers: false,
    privateNetworks: () => undefined,
  }
  const request = { issuerUrl, jwksUrl: null, caPem: null, packer: 'border', validSeconds: 3_600, sequence: 1 }
  return packKeys({ ...request, ...changed }, key, {
    outbound,
    now: () => now,
    readCertificateDigest: async () => 'ab',
  })
}

test('what is packed is read back: any names, any number of keys, either algorithm', async () => {
  const kid = fc.string({ minLength: 1, maxLength: 20 })
  const packing = fc.record({
    kids: fc.uniqueArray(kid, { minLength: 1, maxLength: 8 }),
    packer: fc.string({ minLength: 1, maxLength: 100 }),
    sequence: fc.nat(),
    validSeconds: fc.integer({ min: 1, max: 366 * daySeconds }),
    index: fc.constantFrom(0, 1),
  })
  const check = fc.asyncProperty(packing, async ({ kids, index, ...request }) => {
    const { key } = packers[index] as TestPacker
    const keys = kids.map((each) => ({ ...pairs[0]?.publicJwk, kid: each }))
    const { bundle } = await packFrom({ keys }, key, request)
    const found = await read(bundle)
    if ('refused' in found) throw new Error(found.refused)
    const { packer, issuedAt, expiresAt, sequence } = found.bundle
    expect(found.bundle.keys.map((each) => each.kid)).toEqual(kids)
    expect([packer, sequence]).toEqual([request.packer, request.sequence])
    expect([issuedAt, expiresAt]).toEqual([now, now + request.validSeconds * 1_000])
    expect(found.bundle.evidence).toMatchObject({ jwks_url: `${issuerUrl}/keys`, tls_certificate_sha256: 'ab' })
    expect(splitBundleFile(JSON.stringify({ bundles: [bundle] }))).toEqual([bundle])
  })
  await fc.assert(check, { numRuns: 60 })
})

test('no bundle is read after any one character of it was changed, or after it was cut', async () => {
  const bundle = (await packers[0]?.pack(pairs)) ?? ''
  const place = fc.nat({ max: bundle.length - 1 })
  const change = fc.asyncProperty(place, fc.constantFrom(...'Aa0_-.'), async (at, character) => {
    fc.pre(bundle[at] !== character)
    const changed = await read(bundle.slice(0, at) + character + bundle.slice(at + 1))
    const reasons = ['bundle_malformed', 'bundle_signature_invalid', 'bundle_signer_unknown']
    expect(reasons).toContain('refused' in changed ? changed.refused : 'accepted')
    expect(await read(bundle.slice(0, at))).toMatchObject({ refused: 'bundle_malformed' })
  })
  await fc.assert(change, { numRuns: 150 })
})

describe('a packer', () => {
  test('does not pack a key set with a private key', async () => {
    const { key } = packers[0] as TestPacker
    const leaked = { ...pairs[0]?.publicJwk, d: 'c2VjcmV0' }
    await expect(packFrom({ keys: [leaked] }, key)).rejects.toThrow('publishes a private key')
  })

  test('has a key of Ed25519 or P-256, of which the server reads only the public half', async () => {
    for (const algorithm of ['EdDSA', 'ES256'] as const) {
      const key = await createPackerKey(algorithm)
      expect(await readPackerKey(key.privateJwk)).toEqual(key)
      expect(await readSignerKey(key.publicJwk)).toMatchObject({ algorithm, keyId: key.keyId })
      await expect(readSignerKey(key.privateJwk)).rejects.toThrow('private key of the packer')
      await expect(readPackerKey(key.publicJwk)).rejects.toThrow('no private half')
    }
    await expect(readSignerKey({ kty: 'OKP', crv: 'Ed25519', x: 'AA' })).rejects.toThrow('Ed25519 or P-256')
    await expect(readSignerKey({ kty: 'RSA', n: 'AQAB', e: 'AQAB' })).rejects.toThrow('Ed25519 or P-256')
  })
})

describe('a bundle is refused', () => {
  const refusals: [name: string, changed: object, reason: string][] = [
    ['with a private member in a key', { keys: [{ kty: 'EC', crv: 'P-256', d: 'x' }] }, 'bundle_private_members'],
    ['with a symmetric key', { keys: [{ kty: 'oct', k: 'x' }] }, 'bundle_private_members'],
    ['without usable keys', { keys: [] }, 'bundle_keys_unusable'],
    ['without an expiry', { exp: undefined }, 'bundle_malformed'],
    ['with a time in milliseconds', { exp: now }, 'bundle_malformed'],
    ['with a sequence below zero', { seq: -1 }, 'bundle_malformed'],
    ['without a subject', { sub: '' }, 'bundle_malformed'],
    ['of more than 64 KB', { evidence: { jwks_url: 'x'.repeat(64 * 1024) } }, 'bundle_too_large'],
  ]
  for (const [name, changed, reason] of refusals)
    test(name, async () => {
      expect(await read((await packers[0]?.pack(pairs, changed)) ?? '')).toMatchObject({ refused: reason })
    })

  test('as another type of JWS, such as an access token', async () => {
    const bundle = (await packers[0]?.pack(pairs)) ?? ''
    const [, payload, signature] = bundle.split('.')
    const header = Buffer.from(JSON.stringify({ alg: 'EdDSA', kid: packers[0]?.key.keyId, typ: 'at+jwt' }))
    expect(await read(`${header.toString('base64url')}.${payload}.${signature}`)).toMatchObject({
      refused: 'bundle_malformed',
    })
  })

  test('with an extension, which the signer meant to be understood', async () => {
    const [{ key } = await createPacker(issuerUrl, () => now)] = packers
    const [, payload = ''] = ((await packers[0]?.pack(pairs)) ?? '').split('.')
    const header = { alg: key.algorithm, typ: 'jwk-set+jwt', kid: key.keyId, b64: true, crit: ['b64'] }
    const bundle = await new CompactSign(Buffer.from(payload, 'base64url'))
      .setProtectedHeader(header)
      .sign(await importJWK(key.privateJwk, key.algorithm))
    expect(await read(bundle)).toMatchObject({ refused: 'bundle_malformed' })
  })

  test.each(['', '   ', '{"bundles":[]}', '{"bundles":["eyJ', '{"bundles":[1]}', '{"keys":[]}'])(
    'as the file %p, which has none',
    (text) => {
      expect(splitBundleFile(text)).toMatchObject({ refused: 'bundle_file_malformed' })
    },
  )
})

test('times and sequence are compared: skew of 30 s, the end itself, an equal sequence', async () => {
  const found = await read((await packers[0]?.pack(pairs)) ?? '')
  if ('refused' in found) throw new Error(found.refused)
  const { bundle } = found
  const reasonAt = (at: number, lastSequence?: number) =>
    checkKeyBundle(bundle, { now: at, clockSkewSeconds: 30, lastSequence })?.refused
  expect([reasonAt(now - 30_000), reasonAt(now - 30_001)]).toEqual([undefined, 'bundle_issued_in_future'])
  const end = bundle.expiresAt
  expect([reasonAt(end - 1), reasonAt(end)]).toEqual([undefined, 'bundle_expired'])
  expect([reasonAt(now, 9), reasonAt(now, 10)]).toEqual([undefined, 'bundle_replayed'])
})

test('keys are usable until they expire and the grace is over, and warned of 14, 7 and 1 days before', () => {
  const day = daySeconds * 1_000
  const issuer = { keysExpireAt: now, keyBundle: null, bundleSignerId: null, jwks: '{"keys":[1]}' }
  expect(refuseExpired(issuer, now - 1, 0)).toBeUndefined()
  expect(refuseExpired(issuer, now, 0)).toMatchObject({ refused: 'issuer_keys_expired' })
  expect(refuseExpired(issuer, now + day - 1, day)).toBeUndefined()
  expect(refuseExpired(issuer, now + day, day)).toMatchObject({ refused: 'issuer_keys_expired' })
  const warnings = [14.1, 14, 7.1, 7, 1.1, 1, 0].map((days) => expiryWarningOf(issuer, now - days * day))
  expect(warnings).toEqual([undefined, 14, 14, 7, 7, 1, 0])
  expect(expiryWarningOf({ keysExpireAt: null }, now)).toBeUndefined()
})
