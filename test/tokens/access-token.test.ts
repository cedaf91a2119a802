// Access tokens (reference: Access token; RFC 9068): what one carries, that others can verify it, and that nothing but ours passes.
import { beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createLocalJWKSet, decodeJwt, generateKeyPair, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { isWithinLife, mintAccessToken, verifyAccessToken } from '../../src/tokens/access-token.ts'
import { readMasterKey } from '../../src/tokens/master-key.ts'
import { createSigningKey, openSigningKeys, type SigningKey, type SigningKeys } from '../../src/tokens/signing-keys.ts'

const baseUrl = 'https://llm.example.com/v1'
const now = 1_800_000_000_900
const unbounded = { allowedModels: null, allowedPresets: null }
const about = { subject: 's', keyId: 'key', policyId: 'policy', issuerId: 'issuer', ...unbounded }
let signingKeys: SigningKeys
let signer: SigningKey
beforeAll(async () => {
  const masterKey = await readMasterKey({ kind: 'value', hex: '0'.repeat(64) }, { create: false })
  const rows = [await createSigningKey(masterKey, 0), await createSigningKey(masterKey, 1_000)]
  signingKeys = await openSigningKeys(rows, masterKey)
  signer = signingKeys.current(now)
})

const mint = (lifetimeSeconds = 900) => mintAccessToken({ signingKeys, baseUrl }, about, lifetimeSeconds, now)
const verify = (text: string, at = now, asBaseUrl = baseUrl) =>
  verifyAccessToken({ signingKeys, baseUrl: asBaseUrl }, text, at)

/** The same signature with one of its four loose bits set: a lenient decoder reads the same bytes. */
function loosened(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  return text.slice(0, -1) + alphabet[alphabet.indexOf(text.at(-1) ?? '') | 1]
}

describe('a minted token', () => {
  test('can be verified with the published keys alone', async () => {
    const published = createLocalJWKSet(JSON.parse(signingKeys.jwks(now)))
    const { text, id, expiresAt } = await mint()
    const { payload, protectedHeader } = await jwtVerify(text, published, {
      issuer: baseUrl,
      audience: baseUrl,
      typ: 'at+jwt',
      algorithms: ['ES256'],
      currentDate: new Date(now),
    })
    expect(protectedHeader).toEqual({ alg: 'ES256', typ: 'at+jwt', kid: signer.kid })
    expect(payload).toEqual({
      iss: baseUrl,
      aud: baseUrl,
      sub: 's',
      client_id: 'key',
      scope: 'inference',
      iat: 1_800_000_000,
      exp: 1_800_000_900,
      jti: id,
      federation_policy_id: 'policy',
      federation_issuer_id: 'issuer',
    })
    expect(expiresAt).toBe(1_800_000_900_000)
  })

  test.each([
    [{ allowedModels: ['meta/*'], allowedPresets: null }, { models: ['meta/*'] }],
    [{ allowedModels: null, allowedPresets: ['support', 'x*'] }, { presets: ['support', 'x*'] }],
    [
      { allowedModels: [], allowedPresets: [] },
      { models: [], presets: [] },
    ],
  ])('carries the bounds of its policy: %j', async (allowed, details) => {
    const { text } = await mintAccessToken({ signingKeys, baseUrl }, { ...about, ...allowed }, 60, now)
    expect(decodeJwt(text).authorization_details).toEqual([{ type: 'inference', ...details }])
    expect(await verify(text)).toMatchObject({ claims: allowed })
  })

  test('without bounds says nothing of them', async () => {
    expect(decodeJwt((await mint()).text)).not.toHaveProperty('authorization_details')
  })

  test('gives back what it was made for, for any subject', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'binary', maxLength: 512 }).filter((text) => text.isWellFormed()),
        async (subject) => {
          const { text, id, expiresAt } = await mintAccessToken(
            { signingKeys, baseUrl },
            { ...about, subject },
            60,
            now,
          )
          expect(await verify(text)).toEqual({ claims: { ...about, subject, id }, kid: signer.kid, expiresAt })
        },
      ),
      { numRuns: 50 },
    )
  })

  test('has a new id each time', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, async () => (await mint()).id))
    expect(new Set(ids).size).toBe(20)
  })

  test('is valid as far ahead of its exp as any is issued, a minute for a clock that was set back included', async () => {
    const { text, expiresAt } = await mint(900)
    const ahead = (900 + 60) * 1_000
    expect(await verify(text, expiresAt - ahead)).toMatchObject({ claims: about })
    expect(await verify(text, expiresAt - ahead - 1)).toBe('token_from_future')
    expect([expiresAt - ahead, expiresAt - ahead - 1].map((at) => isWithinLife(expiresAt, at))).toEqual([true, false])
    expect([expiresAt - 1, expiresAt].map((at) => isWithinLife(expiresAt, at))).toEqual([true, false])
  })

  test('is valid until the second of its exp and not in it', async () => {
    const { text } = await mint(1)
    expect(await verify(text, 1_800_000_000_999)).toMatchObject({ claims: about })
    expect(await verify(text, 1_800_000_001_000)).toBe('token_expired')
  })
})

/** A token signed by our own key with one thing changed. */
async function forge(claims: JWTPayload, header: Record<string, unknown> = {}, key: CryptoKey = signer.privateKey) {
  const good = decodeJwt((await mint()).text)
  return new SignJWT({ ...good, ...claims })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: signer.kid, ...header })
    .sign(key)
}

describe('a token is refused', () => {
  const rows: [name: string, token: () => Promise<string>][] = [
    ['with another iss', () => forge({ iss: 'https://other.example/v1' })],
    ['with another aud', () => forge({ aud: 'https://other.example/v1' })],
    ['with another scope', () => forge({ scope: 'management' })],
    ['with a wider scope', () => forge({ scope: 'inference management' })],
    ['without exp', () => forge({ exp: undefined })],
    ['without iat', () => forge({ iat: undefined })],
    ['without sub', () => forge({ sub: undefined })],
    ['without client_id', () => forge({ client_id: undefined })],
    ['with a client_id that is a list', () => forge({ client_id: ['key'] })],
    ['without jti', () => forge({ jti: undefined })],
    ['of typ JWT', () => forge({}, { typ: 'JWT' })],
    ['without typ', () => forge({}, { typ: undefined })],
    ['with an unknown kid', () => forge({}, { kid: 'unknown' })],
    ['without kid', () => forge({}, { kid: undefined })],
    ['signed by another key', async () => forge({}, {}, (await generateKeyPair('ES256')).privateKey)],
    ['with its payload changed', async () => (await mint()).text.replace(/\.[^.]+\./, `.${btoa('{"sub":"admin"}')}.`)],
    ['whose signature is spelled with other loose bits', async () => loosened((await mint()).text)],
    ['cut short', async () => (await mint()).text.slice(0, -4)],
    [
      'signed by another key and expired',
      async () => forge({ exp: 1 }, {}, (await generateKeyPair('ES256')).privateKey),
    ],
    ['of no text', async () => ''],
    ['that is no token', async () => 'sk-lk-v1-x'],
  ]
  for (const [name, token] of rows) {
    test(name, async () => expect(await verify(await token())).toBe('token_invalid'))
  }

  test('under another base URL', async () =>
    expect(await verify((await mint()).text, now, 'http://localhost/v1')).toBe('token_invalid'))

  test('with alg none or HS256 under the public key', async () => {
    const [, payload] = (await mint()).text.split('.')
    const header = (alg: string) =>
      Buffer.from(JSON.stringify({ alg, typ: 'at+jwt', kid: signer.kid })).toString('base64url')
    expect(await verify(`${header('none')}.${payload}.`)).toBe('token_invalid')
    const secret = Buffer.from(JSON.stringify(signer.publicJwk))
    const hmac = new SignJWT(decodeJwt(`${header('HS256')}.${payload}.x`))
    const signed = await hmac.setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: signer.kid }).sign(secret)
    expect(await verify(signed)).toBe('token_invalid')
  })

  test('for any text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(fc.string(), fc.base64String()), { maxLength: 4 }), async (parts) => {
        expect(await verify(parts.join('.'))).toBe('token_invalid')
      }),
    )
  })
})
