// `issuers verify`: what an exchange would meet at a real issuer, told check by check, with nothing saved.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { IssuerVerification } from '../../src/admin/verify-issuer.ts'
import { json } from '../../src/http/reply.ts'
import { type Federation, listenLocally, startFederation } from '../support/latchkey.ts'
import { createKeyPair } from '../support/subject-token.ts'

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
    expect(verification.checks[1]?.detail).toContain('ahead of ours')
    await listener.drain()
  })

  test('with pasted keys is looked at without a fetch', async () => {
    const { publicJwk } = await createKeyPair('ES256', 'es')
    const pasted = { issuer_url: 'https://idp.invalid', jwks: { keys: [publicJwk] } }
    expect(await verify(pasted)).toMatchObject({ ok: true, keys: [{ kid: 'es', algorithm: 'ES256' }] })
  })

  test('that is not said is asked for', async () => {
    await expect(verify({})).rejects.toThrow('--url')
  })
})
