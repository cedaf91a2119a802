// `issuers verify`: what an exchange would meet at a real issuer, reported check by check, with nothing saved.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { IssuerVerification } from '../../../src/admin/issuers/verify-issuer.ts'
import { json } from '../../../src/http/reply.ts'
import { type Federation, listenLocally, startFederation } from '../../support/latchkey.ts'
import { createKeyPair } from '../../support/subject-token.ts'

let federation: Federation
beforeAll(async () => {
  federation = await startFederation()
})
afterAll(() => federation.stop())

const verify = (input: object) => federation.admin<IssuerVerification>('issuers.verify', { ...input })
const outcomes = ({ checks }: IssuerVerification) => checks.map(({ step, ok }) => `${step} ${ok}`)

describe('an issuer', () => {
  test('that is saved and well passes every check', async () => {
    const verification = await verify({ issuer: 'idp' })
    expect(verification.ok).toBe(true)
    expect(outcomes(verification)).toEqual(['discovery true', 'keys true', 'clock true'])
    expect(verification.keys.map(({ algorithm }) => algorithm)).toEqual(['RS256', 'ES256'])
  })

  test('that is not saved is tried and stays unsaved', async () => {
    expect((await verify({ issuer_url: federation.issuerUrl })).ok).toBe(true)
    expect((await federation.admin<{ data: object[] }>('issuers.list')).data).toHaveLength(1)
  })

  test('of which another is named in the discovery document fails there', async () => {
    const verification = await verify({ issuer_url: federation.issuerUrl.replace('127.0.0.1', 'localhost') })
    expect(outcomes(verification)).toEqual(['discovery false'])
    expect(verification.checks[0]?.detail).toContain('names the issuer')
  })

  test('with a clock ahead of ours fails by its clock alone', async () => {
    const { publicJwk } = await createKeyPair('ES256', 'es')
    const date = new Date(Date.now() + 120_000).toUTCString()
    const { url, listener } = await listenLocally(async () => json(200, { keys: [publicJwk] }, { date }))
    const verification = await verify({ issuer_url: url, jwks_url: `${url}/keys` })
    expect(outcomes(verification)).toEqual(['keys true', 'clock false'])
    expect(verification.checks[1]?.detail).toContain('ahead of this server')
    await listener.drain()
  })

  test('with pasted keys is looked at without a fetch', async () => {
    const { publicJwk } = await createKeyPair('ES256', 'es')
    const pasted = { issuer_url: 'https://idp.invalid', jwks: { keys: [publicJwk] } }
    expect(await verify(pasted)).toMatchObject({ ok: true, keys: [{ kid: 'es', algorithm: 'ES256' }] })
  })

  test('with keys that an exchange cannot distinguish fails, and they are named', async () => {
    const [{ publicJwk: one }, { publicJwk: other }] = [
      await createKeyPair('ES256', 'es'),
      await createKeyPair('RS256', 'es'),
    ]
    const look = (...keys: object[]) => verify({ issuer_url: 'https://idp.invalid', jwks: { keys } })
    const twice = await look(one, one, other)
    expect(outcomes(twice)).toEqual(['keys false'])
    expect(twice.checks[0]?.detail).toBe(
      '2 ES256 keys share the kid "es": exchanges refuse their tokens as kid_ambiguous',
    )
    expect(twice.keys).toHaveLength(3)
    expect((await look(one, other)).ok).toBe(true)
    const nameless = { ...one, kid: undefined }
    expect((await look(nameless, nameless)).checks[0]?.detail).toContain('2 ES256 keys have no kid')
    expect((await look(nameless, one)).ok).toBe(true)
    const many = Array.from({ length: 10 }, (_, index) => ({ ...one, kid: `${index % 5}` }))
    expect((await look(...many)).checks[0]?.detail).toContain('share the kid "2" and 2 more such')
  })

  const private_ = { kty: 'EC', crv: 'P-256', x: 'x', y: 'y', d: 'MC4CAQAw' }
  const unusable: [name: string, jwks: unknown, detail: string][] = [
    ['no key', { keys: [] }, 'no key that can verify'],
    ['no usable key', { keys: [{ kty: 'oct' }] }, 'no key that can verify'],
    ['a private key', { keys: [private_] }, 'private or secret key'],
    ['too much', { keys: [], more: 'x'.repeat(256 * 1024) }, 'at most'],
    ['no list of keys', {}, 'Not a JWKS'],
    ['nothing', null, 'Not a JWKS'],
    ['a text', 'keys', 'Not a JWKS'],
  ]
  for (const [name, jwks, detail] of unusable) {
    test(`with a pasted set that holds ${name} fails by its keys, and is reported`, async () => {
      const verification = await verify({ issuer_url: 'https://idp.invalid', jwks })
      expect(verification).toMatchObject({ ok: false, keys: [], checks: [{ step: 'keys', ok: false }] })
      expect(verification.checks[0]?.detail).toContain(detail)
      expect(JSON.stringify(verification)).not.toContain(private_.d)
    })
  }

  test('must have one key source', async () => {
    const two = { issuer_url: 'https://idp.invalid', jwks_url: 'https://idp.invalid/keys', jwks: { keys: [] } }
    await expect(verify(two)).rejects.toThrow('one key source')
  })

  test('that is saved is shown with the keys available, and without those of another source', async () => {
    const keysOf = async () =>
      (await federation.admin<{ keys: { algorithm: string }[] }>('issuers.show', { issuer })).keys
    const issuer = 'idp'
    await federation.admin('issuers.refresh', { issuer })
    expect((await keysOf()).map(({ algorithm }) => algorithm)).toEqual(['RS256', 'ES256'])
    await federation.admin('issuers.update', { issuer, jwks_url: `${federation.issuerUrl}/elsewhere` })
    expect(await keysOf()).toEqual([])
    await federation.admin('issuers.update', { issuer, discovery: true })
    expect(await keysOf()).toHaveLength(2)
  })

  test('that is not said is asked for', async () => {
    await expect(verify({})).rejects.toThrow('or an issuer URL')
  })
})
