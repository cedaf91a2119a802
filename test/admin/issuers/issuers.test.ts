// Admin operations on issuers: which certificates and addresses may be saved.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'

const read = (name: string) => readFileSync(join(import.meta.dirname, '../../fixtures/tls', name), 'utf8')
const [ca, server, privateKey] = [read('ca.pem'), read('server.pem'), read('server.key')]

let served: TestServer
beforeAll(async () => {
  served = await startTestServer()
})
afterAll(() => served.stop())

let made = 0
const issuer = (fields: object) => ({ name: `i${made++}`, issuer_url: `https://i${made}.example`, ...fields })

describe('a CA', () => {
  test('of one or several certificates is kept', async () => {
    for (const ca_pem of [ca, `${ca}\n${server}`])
      expect(await served.admin('issuers.add', issuer({ ca_pem }))).toMatchObject({ ca_pem })
  })

  const rows: [name: string, ca_pem: string][] = [
    ['with a private key', `${ca}\n${privateKey}`],
    ['that is a private key', privateKey],
    ['that is no PEM', 'a certificate'],
    ['that is empty', ''],
    ['that is cut off', ca.slice(0, 400)],
    ['with one certificate that cannot be read', `${ca}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----`],
  ]
  for (const [name, ca_pem] of rows) {
    test(`${name} is refused for issuers and for upstreams, and not echoed`, async () => {
      const { id } = await served.admin('issuers.add', issuer({}))
      const upstream = await served.admin('upstreams.add', { name: `u${made++}`, base_url: 'http://127.0.0.1:1/v1' })
      for (const [operation, input] of [
        ['issuers.add', issuer({ ca_pem })],
        ['issuers.update', { issuer: id, ca_pem }],
        ['issuers.verify', { issuer_url: 'https://127.0.0.1:1', ca_pem }],
        ['upstreams.add', { name: 'bad', base_url: 'http://127.0.0.1:1/v1', ca_pem }],
        ['upstreams.update', { upstream: upstream.id, ca_pem }],
      ] as const) {
        const error = await served.admin(operation, input as Record<string, unknown>).then(
          () => undefined,
          (error: Error) => error,
        )
        expect({ operation, error }).toMatchObject({ operation, error: { code: 'invalid' } })
        expect(error?.message).not.toContain('BEGIN PRIVATE')
      }
      expect(await served.admin('issuers.show', { issuer: id })).toMatchObject({ ca_pem: null })
    })
  }
})

describe('an issuer URL', () => {
  test('is one issuer of its organization until that is deleted', async () => {
    const issuer_url = 'https://one.example'
    await served.admin('organizations.create', { name: 'other' })
    const { id } = await served.admin('issuers.add', { name: 'first', issuer_url })
    await expect(served.admin('issuers.add', { name: 'second', issuer_url })).rejects.toMatchObject({
      code: 'conflict',
    })
    const other = await served.admin('issuers.add', issuer({}))
    await expect(served.admin('issuers.update', { issuer: other.id, issuer_url })).rejects.toMatchObject({
      code: 'conflict',
    })
    expect(await served.admin('issuers.add', { name: 'first', issuer_url, organization: 'other' })).toMatchObject({
      issuer_url,
    })
    await served.admin('issuers.delete', { issuer: id })
    expect(await served.admin('issuers.add', { name: 'first', issuer_url })).toMatchObject({ issuer_url })
  })

  test('of http, with a query or with a user is refused', async () => {
    for (const issuer_url of ['http://idp.example.com', 'https://idp.example.com?a=b', 'https://user@idp.example.com'])
      await expect(served.admin('issuers.add', issuer({ issuer_url }))).rejects.toMatchObject({ code: 'invalid' })
  })

  test('keys come from one source', async () => {
    const sources = { jwks_url: 'https://idp.example.com/keys', jwks: { keys: [] } }
    await expect(served.admin('issuers.add', issuer(sources))).rejects.toThrow('one key source')
  })
})

describe('whether strangers get tokens of an issuer', () => {
  test.each([true, false])('is %p once it is answered, and not answered otherwise', async (shared) => {
    const { id } = await served.admin('issuers.add', issuer({}))
    expect(await served.admin('issuers.show', { issuer: id })).toMatchObject({ shared: null })
    expect(await served.admin('issuers.update', { issuer: id, shared })).toMatchObject({ shared })
    expect(await served.admin('issuers.update', { issuer: id, clock_skew_seconds: 5 })).toMatchObject({ shared })
    expect(await served.admin('issuers.update', { issuer: id, shared: null })).toMatchObject({ shared: null })
    expect(await served.admin('issuers.add', issuer({ shared }))).toMatchObject({ shared })
  })

  test('is no text', async () => {
    for (const shared of ['no', '', 0])
      await expect(served.admin('issuers.add', issuer({ shared }))).rejects.toMatchObject({ code: 'invalid' })
  })

  test('is asked again after a change of the URL, unless it is answered with it', async () => {
    const { id } = await served.admin('issuers.add', issuer({ shared: false }))
    const move = (fields: object) => served.admin('issuers.update', { issuer: id, ...issuer({}), ...fields })
    expect(await move({ shared: true })).toMatchObject({ shared: true })
    expect(await move({})).toMatchObject({ shared: null })
  })
})
