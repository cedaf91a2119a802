// Who may come in (reference: Credentials): each credential, the text of each refusal, and that a key's state counts at
// once.
import { afterAll, beforeAll, describe, expect, setSystemTime, test } from 'bun:test'
import { createApiKeyText } from '../../src/keys/api-key.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'

let federation: Federation
let accessToken: string
let managementKey: string
let readOnlyKey: string
beforeAll(async () => {
  federation = await startFederation()
  accessToken = await exchanged()
  managementKey = await createKey('management', { kind: 'management' })
  readOnlyKey = await createKey('read-only', { kind: 'management_read_only' })
})
afterAll(() => federation.stop())

async function exchanged(): Promise<string> {
  const reply = await federation.exchange(await federation.mint())
  return ((await reply.json()) as { access_token: string }).access_token
}

async function createKey(name: string, more: Record<string, string> = {}): Promise<string> {
  return (await federation.admin<Row & { key: string }>('keys.create', { name, ...more })).key
}

const call = (authorization?: string) =>
  fetch(`${federation.server.baseUrl}/models`, { headers: authorization === undefined ? {} : { authorization } })

async function expectError(response: Response, status: number, message: string | RegExp, challenge: string | null) {
  const body = await response.json()
  const text = typeof message === 'string' ? message : expect.stringMatching(message)
  expect({ status: response.status, body }).toEqual({
    status,
    body: { error: { code: status, message: text, metadata: { error_type: expect.any(String) } } },
  })
  const { origin, pathname } = new URL(federation.server.baseUrl)
  const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource${pathname}"`
  const whole = challenge === null ? null : `${challenge}${challenge === 'Bearer' ? ' ' : ', '}${metadata}`
  expect(response.headers.get('www-authenticate')).toBe(whole)
  expect(response.headers.get('cache-control')).toBe('no-store')
}

describe('200', () => {
  const rows: [name: string, header: () => string][] = [
    ['an inference key', () => `Bearer ${federation.key.key}`],
    ['an access token', () => `Bearer ${accessToken}`],
    ['a scheme in another case', () => `bEARER ${federation.key.key}`],
    ['several spaces', () => `Bearer   ${federation.key.key}`],
  ]
  for (const [name, header] of rows) {
    test(`${name} is let in`, async () => expect((await call(header())).status).toBe(200))
  }
})

describe('the Authorization header counts before x-api-key', () => {
  const both = async (authorization: string, key: string) =>
    (await fetch(`${federation.server.baseUrl}/models`, { headers: { authorization, 'x-api-key': key } })).status

  test('where either of them would be refused', async () => {
    expect(await both(`Bearer ${federation.key.key}`, createApiKeyText())).toBe(200)
    expect(await both(`Bearer ${createApiKeyText()}`, federation.key.key)).toBe(401)
    expect(await both(`Bearer ${managementKey}`, federation.key.key)).toBe(403)
    expect(await both('', federation.key.key)).toBe(200)
  })
})

describe('401', () => {
  test('no header is reported as missing', async () => {
    await expectError(await call(), 401, 'Missing Authentication header', 'Bearer')
  })

  test('an empty header is reported as missing', async () => {
    await expectError(await call(''), 401, 'Missing Authentication header', 'Bearer')
  })

  const malformed: [name: string, header: () => string][] = [
    ['another scheme', () => `Basic ${btoa('user:password')}`],
    ['a key without a scheme', () => federation.key.key],
    ['an access token without a scheme', () => accessToken],
    ['a scheme without a key', () => 'Bearer'],
    ['two keys', () => `Bearer ${federation.key.key} ${federation.key.key}`],
    ['two headers joined', () => `Bearer ${federation.key.key}, Bearer ${federation.key.key}`],
  ]
  for (const [name, header] of malformed) {
    test(`${name} is refused, and the form is named`, async () => {
      const message = 'The Authorization header must be "Bearer", a space and one credential'
      await expectError(await call(header()), 401, message, 'Bearer error="invalid_token"')
    })
  }

  const rows: [name: string, header: () => string][] = [
    ['an unknown key', () => `Bearer ${createApiKeyText()}`],
    ['a key in upper case', () => `Bearer ${federation.key.key.toUpperCase()}`],
    ['a key cut short', () => `Bearer ${federation.key.key.slice(0, -1)}`],
    ["a key's hash", () => `Bearer ${federation.key.hash}`],
    ["a key's id", () => `Bearer ${federation.key.id}`],
    ["a key's label", () => `Bearer ${String(federation.key.label).replace('…', '...')}`],
    [
      'an access token changed',
      () => `Bearer ${accessToken.slice(0, -9)}${accessToken.at(-9) === 'A' ? 'B' : 'A'}${accessToken.slice(-8)}`,
    ],
    ['an access token with padding', () => `Bearer ${accessToken}=`],
    ['the token of the upstream', () => 'Bearer upstream-secret'],
  ]
  for (const [name, header] of rows) {
    test(`${name} is refused`, async () => {
      await expectError(await call(header()), 401, 'Invalid credentials', 'Bearer error="invalid_token"')
    })
  }

  test('a subject token has to be exchanged first, and the message says where', async () => {
    const message = `This JWT is not an access token: exchange it first at ${federation.server.baseUrl}/oauth/token`
    const response = await call(`Bearer ${await federation.mint()}`)
    await expectError(response, 401, message, 'Bearer error="invalid_token"')
  })

  test('the refusal of an expired access token says when it expired, and to exchange again', async () => {
    const exp = (JSON.parse(atob(accessToken.split('.')[1] ?? '')) as { exp: number }).exp * 1_000
    const time = new Date(exp).toISOString()
    const rows: [afterMilliseconds: number, told: string][] = [
      [0, `at ${time.slice(11, 19)} UTC (0 s ago)`],
      [12_900, `at ${time.slice(11, 19)} UTC (12 s ago)`],
      [3 * 60_000, `at ${time.slice(11, 19)} UTC (3 min ago)`],
      [25 * 3_600_000, `on ${time.slice(0, 10)} at ${time.slice(11, 19)} UTC (25 h ago)`],
    ]
    try {
      for (const [after, told] of rows) {
        setSystemTime(exp + after)
        const message = `The access token expired ${told}; exchange again`
        await expectError(await call(`Bearer ${accessToken}`), 401, message, 'Bearer error="invalid_token"')
        // Without its signature it is like any other text.
        const changed = `${accessToken.slice(0, -9)}${accessToken.at(-9) === 'A' ? 'B' : 'A'}${accessToken.slice(-8)}`
        await expectError(await call(`Bearer ${changed}`), 401, 'Invalid credentials', 'Bearer error="invalid_token"')
      }
    } finally {
      setSystemTime()
    }
    expect(JSON.parse(federation.logLines.at(-2) ?? '')).toMatchObject({ reason: 'token_expired' })
  })

  test('no log line holds a credential', async () => {
    for (const [, header] of [...malformed, ...rows]) await call(header())
    const logged = federation.logLines.join('')
    for (const secret of [federation.key.key, accessToken, 'upstream-secret'])
      expect(logged.includes(secret)).toBe(false)
  })
})

describe('403', () => {
  test('management keys cannot call inference, neither read-write nor read-only', async () => {
    for (const key of [managementKey, readOnlyKey]) {
      await expectError(await call(`Bearer ${key}`), 403, /inference key or an access token/, null)
    }
  })
})

describe('the state of a key counts at the next request, for the key and for tokens that act as it', () => {
  test('disabled, enabled again, and deleted', async () => {
    const key = await createKey('short-lived')
    await federation.admin('policies.update', { policy: 'policy', key: 'short-lived' })
    const token = await exchanged()
    const statuses = async () => [(await call(`Bearer ${key}`)).status, (await call(`Bearer ${token}`)).status]
    expect(await statuses()).toEqual([200, 200])
    await federation.admin('keys.disable', { key: 'short-lived' })
    expect(await statuses()).toEqual([401, 401])
    await federation.admin('keys.enable', { key: 'short-lived' })
    expect(await statuses()).toEqual([200, 200])
    await federation.admin('keys.delete', { key: 'short-lived' })
    expect(await statuses()).toEqual([401, 401])
  })
})
