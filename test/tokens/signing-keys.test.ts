// The keys that sign access tokens: private at rest and in what is published, opened only by their own master key, chosen by time.
import { beforeAll, describe, expect, test } from 'bun:test'
import type { SigningKey as SigningKeyRow } from '../../db/schema/schema.ts'
import { listSigningKeys } from '../../db/tables/signing-keys.ts'
import { decrypt, readMasterKey } from '../../src/tokens/master-key.ts'
import { createSigningKey, openSigningKeys, retirementMilliseconds } from '../../src/tokens/signing-keys.ts'
import { readFilesIn } from '../support/database-file.ts'
import { startTestServer } from '../support/latchkey.ts'
import { hasDatabaseFiles } from '../support/sqld.ts'

let masterKey: CryptoKey
let older: SigningKeyRow
let newer: SigningKeyRow
beforeAll(async () => {
  masterKey = await readMasterKey({ kind: 'value', hex: '01'.repeat(32) }, { create: false })
  older = await createSigningKey(masterKey, 1_000)
  newer = await createSigningKey(masterKey, 2_000)
})

describe('at rest', () => {
  test.skipIf(!hasDatabaseFiles)('no part of a private key is in any file of the data folder', async () => {
    const latchkey = await startTestServer()
    const { config, server, folder } = latchkey
    const rows = await listSigningKeys(server.context.orm)
    expect(rows).toHaveLength(1)
    const [row] = rows as [SigningKeyRow]
    const ownKey = await readMasterKey(config.masterKey, { create: false })
    const pkcs8 = Buffer.from(await decrypt(ownKey, row.id, row.privateKeyEncrypted))
    const curve = { name: 'ECDSA', namedCurve: 'P-256' }
    const { d, x } = await crypto.subtle.exportKey(
      'jwk',
      await crypto.subtle.importKey('pkcs8', pkcs8, curve, true, ['sign']),
    )
    const secret = Buffer.from(String(d), 'base64url')
    expect(secret).toHaveLength(32)

    const bytes = readFilesIn(folder)
    // What must be found shows that the search would find what must not be there.
    expect(bytes.includes(row.privateKeyEncrypted)).toBe(true)
    expect(bytes.includes(String(x))).toBe(true)
    for (const spelling of [
      secret,
      pkcs8,
      secret.toString('hex'),
      secret.toString('base64'),
      String(d),
      pkcs8.toString('base64'),
    ]) {
      expect(bytes.includes(spelling)).toBe(false)
    }
    await latchkey.stop()
  })

  test('a row opened with another master key is refused in a sentence that says what to do', async () => {
    const other = await readMasterKey({ kind: 'value', hex: '02'.repeat(32) }, { create: false })
    const opening = openSigningKeys([older], other)
    await expect(opening).rejects.toMatchObject({ name: 'Fault', code: 'configuration' })
    await expect(opening).rejects.toThrow('master key')
  })

  test('a private key moved into another row does not open', async () => {
    const moved = { ...newer, privateKeyEncrypted: older.privateKeyEncrypted }
    await expect(openSigningKeys([older, moved], masterKey)).rejects.toMatchObject({ code: 'configuration' })
  })
})

describe('opened', () => {
  test('the private key signs and cannot be exported', async () => {
    const keys = await openSigningKeys([older], masterKey)
    const { privateKey } = keys.current(1_000)
    expect(privateKey.extractable).toBe(false)
    expect(privateKey.usages).toEqual(['sign'])
    await expect(crypto.subtle.exportKey('pkcs8', privateKey)).rejects.toThrow()
  })

  test('the newest key that is active by then signs, and a later one already verifies', async () => {
    const keys = await openSigningKeys([newer, older], masterKey)
    expect(keys.current(1_000).kid).toBe(older.id)
    expect(keys.current(1_999).kid).toBe(older.id)
    expect(keys.current(2_000).kid).toBe(newer.id)
    expect(keys.byKid(newer.id, 0)?.kid).toBe(newer.id)
    expect(keys.byKid('unknown', 0)).toBeUndefined()
    expect(keys.byKid('', 0)).toBeUndefined()
  })

  test('a key signs nothing that would outlive it, whatever was planned', async () => {
    const end = 3_000 + retirementMilliseconds
    const keys = await openSigningKeys([older, { ...newer, retiredAt: end }], masterKey)
    expect([1_999, 2_000, 2_999, 3_000, end].map((now) => keys.current(now).kid)).toEqual([
      older.id,
      newer.id,
      newer.id,
      older.id,
      older.id,
    ])
  })

  test('after the clock was set back the oldest key that has not ended signs', async () => {
    const keys = await openSigningKeys([older, newer], masterKey)
    expect(keys.current(0).kid).toBe(older.id)
    const left = await openSigningKeys([{ ...older, retiredAt: -1 }, newer], masterKey)
    expect(left.current(0).kid).toBe(newer.id)
  })

  test('the published set holds every key and nothing private', async () => {
    const { jwks } = await openSigningKeys([older, newer], masterKey)
    const published = JSON.parse(jwks(0)) as { keys: object[] }
    expect(Object.keys(published)).toEqual(['keys'])
    const shape = { alg: 'ES256', crv: 'P-256', kty: 'EC', use: 'sig', x: expect.any(String), y: expect.any(String) }
    expect(published.keys).toEqual([
      { ...shape, kid: newer.id },
      { ...shape, kid: older.id },
    ])
  })
})

test('a running server publishes its keys for five minutes at /oauth/jwks', async () => {
  const latchkey = await startTestServer()
  const response = await fetch(`${latchkey.server.baseUrl}/oauth/jwks`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(response.headers.get('cache-control')).toBe('public, max-age=300')
  expect(await response.text()).toBe(latchkey.server.context.signingKeys.jwks(Date.now()))
  await latchkey.stop()
})
