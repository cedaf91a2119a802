// Sign-in to the admin page with a real identity provider: who gets which role, what ends a session, and what others try on the way
// (the attacks of RFC 9700, by section).
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { renewSessions } from '../../src/admin/sign-in/renewal.ts'
import { createSignInRate } from '../../src/page/sign-in-rate.ts'
import { freePort } from '../support/free-port.ts'
import { postExchange, type Row, startTestServer, type TestServer } from '../support/latchkey.ts'
import { type PeopleProvider, startPeopleProvider } from '../support/people-provider.ts'
import { openPersonBrowser, readForm } from '../support/person-browser.ts'

let provider: PeopleProvider
let latchkey: TestServer
let issuer: Row
let pageUrl: string
const clock = { later: 0 }
const secret = 'the secret of the page'
const roles = ['viewer', 'auditor', 'operator', 'admin'] as const

beforeAll(async () => {
  const port = await freePort()
  pageUrl = `http://127.0.0.1:${port}/admin/`
  const client = {
    ...{ client_id: 'page', client_secret: secret, token_endpoint_auth_method: 'client_secret_basic' },
    ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
    redirect_uris: [`${pageUrl}sign-in/callback`],
    ...{ backchannel_logout_uri: `${pageUrl}sign-in/logout`, backchannel_logout_session_required: true },
  }
  provider = await startPeopleProvider({ clients: [client], idTokenSeconds: 600 })
  latchkey = await startTestServer({
    settings: { LATCHKEY_LISTEN: `127.0.0.1:${port}`, LATCHKEY_BASE_URL: `http://127.0.0.1:${port}/v1` },
    dependencies: { now: () => Date.now() + clock.later },
  })
  const { admin } = latchkey
  for (const role of roles) await admin('keys.create', { name: `${role}s`, kind: kindOf(role), role })
  issuer = await admin('issuers.add', {
    ...{ name: 'staff', issuer_url: provider.issuerUrl, shared: false, page_client_id: 'page' },
    ...{ page_authentication: 'secret', page_secret: secret },
  })
  for (const role of roles)
    await admin('policies.create', {
      ...{ name: role, issuer: 'staff', key: `${role}s`, audience: 'page' },
      condition: `"${role}" in claims.groups`,
    })
})
afterAll(async () => {
  await latchkey.stop()
  await provider.stop()
})
beforeEach(() => {
  clock.later = 0
  const { page } = latchkey.server.context
  if (page !== undefined) page.signInRate = createSignInRate()
  provider.people.clear()
  provider.people.set('ada', { email: 'ada@example.com', groups: ['viewer', 'operator'] })
  provider.people.set('eve', { email: 'eve@example.com', groups: [] })
  provider.who = 'ada'
  provider.intercept = undefined
})
afterEach(async () => {
  clock.later = 0
  for (const { id } of await sessions()) await latchkey.admin('sessions.end', { session: id })
})

const kindOf = (role: string) => (['admin', 'operator'].includes(role) ? 'management' : 'management_read_only')
const sessions = async () => (await latchkey.admin<{ data: Row[] }>('sessions.list')).data
const startUrl = () => `${pageUrl}sign-in/with/${issuer.id}`

/** Signs in as a browser does, and calls the API as the page does. */
async function signIn(browser = openPersonBrowser()) {
  const opened = await browser.open(startUrl(), { headers: { 'sec-fetch-site': 'same-origin' } })
  return { browser, opened, call: callerOf(browser) }
}

function callerOf(browser: ReturnType<typeof openPersonBrowser>) {
  return (path: string, init: RequestInit = {}) => {
    const cookie = [...(browser.cookies.get('127.0.0.1') ?? [])].map((pair) => pair.join('=')).join('; ')
    const headers = { cookie, 'sec-fetch-site': 'same-origin', origin: new URL(pageUrl).origin }
    return fetch(`${latchkey.server.baseUrl}${path}`, { ...init, headers: { ...headers, ...init.headers } })
  }
}

const whoIs = async (call: ReturnType<typeof callerOf>) =>
  ((await (await call('/admin/session')).json()) as { data: Record<string, unknown> }).data

/** Why the last sign-in failed: what the page is given, and the line of the log. */
function failure(url: string) {
  const asked = new URLSearchParams(new URL(url).hash.split('?')[1])
  const line = latchkey.logLines.findLast((each) => each.includes(String(asked.get('request'))))
  return { reason: asked.get('failed'), line: line ?? '' }
}

describe('a person', () => {
  test('gets the strongest role that a policy gives, and the session says who it is and why', async () => {
    const { call, opened } = await signIn()
    expect(opened).toMatchObject({ status: 200, url: pageUrl })
    expect(await whoIs(call)).toMatchObject({
      role: 'operator',
      key: { name: 'operators' },
      person: { name: 'ada@example.com', issuer_url: provider.issuerUrl, subject: 'ada', policy_name: 'operator' },
    })
    expect(await sessions()).toMatchObject([{ role: 'operator', person: { subject: 'ada' } }])
    const created = await call('/keys', {
      method: 'POST',
      body: '{"name":"by ada"}',
      headers: { 'content-type': 'application/json' },
    })
    expect(created.status).toBe(201)
    const { data } = await latchkey.admin<{ data: Row[] }>('audit.changes', { limit: 1 })
    expect(data).toMatchObject([
      {
        operation: 'keys.create',
        actor_issuer: provider.issuerUrl,
        actor_subject: 'ada',
        session_id: expect.any(String),
      },
    ])
    const refused = await call('/workload-identity/issuers', {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    })
    expect(refused.status).toBe(403)
  })

  test('whom no policy accepts is not signed in, and the log says why', async () => {
    provider.who = 'eve'
    const { opened, call } = await signIn()
    const { reason, line } = failure(opened.url)
    expect(reason).toBe('not_allowed')
    expect(line).toContain('admin: condition_false')
    expect((await call('/admin/session')).status).toBe(401)
    expect(await sessions()).toEqual([])
  })

  test('who cancels is not signed in', async () => {
    provider.who = undefined
    expect(failure((await signIn()).opened.url).reason).toBe('canceled')
  })

  test('finds the choices without a credential', async () => {
    expect(await (await fetch(`${pageUrl}sign-in`)).json()).toEqual({ data: [{ id: issuer.id, name: 'staff' }] })
  })
})

test('a policy for a management key issues nothing, and latchkey login does not offer it', async () => {
  const { admin, server } = latchkey
  await admin('issuers.update', { issuer: 'staff', login_client_id: 'page' })
  const origin = new URL(server.baseUrl).origin
  const metadata = await fetch(`${origin}/.well-known/oauth-protected-resource/v1`)
  expect(await metadata.json()).toMatchObject({ latchkey_logins: [] })
  const [policy] = (await admin<{ data: Row[] }>('policies.list')).data
  const now = Math.floor(Date.now() / 1_000)
  const claims = { iss: provider.issuerUrl, aud: 'page', sub: 'ada', groups: roles, iat: now, exp: now + 60 }
  const refused = await postExchange(server.baseUrl, {
    federation_policy_id: policy?.id,
    subject_token: await provider.sign(claims),
  })
  expect(await refused.json()).toMatchObject({ error: 'invalid_grant' })
  const { data } = await admin<{ data: Row[] }>('audit.list', { limit: 1 })
  expect(data).toMatchObject([{ reason: 'policy_signs_in' }])
})

test('a policy that would let strangers become admin is refused, with an example', async () => {
  const { admin } = latchkey
  const google = { issuer_url: 'https://accounts.google.com', page_client_id: 'page.apps.googleusercontent.com' }
  await admin('issuers.add', { name: 'google', ...google })
  const wide = { name: 'everybody', issuer: 'google', key: 'admins', audience: google.page_client_id }
  await expect(admin('policies.create', { ...wide, condition: 'claims.email_verified == true' })).rejects.toThrow(
    /^Strangers could sign in to the admin page as admin: .*This token would pass: \{.*"email_verified":true/,
  )
  const inOffice = 'claims.hd == "example.com" && claims.email_verified == true'
  expect(await admin('policies.create', { ...wide, condition: inOffice })).toMatchObject({
    role: 'admin',
    findings: expect.any(Array),
  })
})

describe('a session of a person', () => {
  const ends: [what: string, change: () => Promise<unknown>, undo: () => Promise<unknown>][] = [
    [
      'its policy is edited',
      () => latchkey.admin('policies.update', { policy: 'operator', condition: '"other" in claims.groups' }),
      () => latchkey.admin('policies.update', { policy: 'operator', condition: '"operator" in claims.groups' }),
    ],
    [
      'its policy is paused',
      () => latchkey.admin('policies.pause', { policy: 'operator' }),
      () => latchkey.admin('policies.resume', { policy: 'operator' }),
    ],
    [
      'its issuer is edited',
      () => latchkey.admin('issuers.update', { issuer: 'staff', clock_skew_seconds: 31 }),
      () => latchkey.admin('issuers.update', { issuer: 'staff', clock_skew_seconds: 30 }),
    ],
    [
      'its key is disabled',
      () => latchkey.admin('keys.disable', { key: 'operators' }),
      () => latchkey.admin('keys.enable', { key: 'operators' }),
    ],
    [
      'the plan ends',
      () => latchkey.admin('organizations.plan', { organization: 'default', plan: 'free' }),
      () => latchkey.admin('organizations.plan', { organization: 'default', plan: 'business' }),
    ],
    [
      'its ID token expires and nothing renews it',
      async () => {
        clock.later = 11 * 60_000
      },
      async () => {},
    ],
  ]
  for (const [what, change, undo] of ends)
    test(`ends when ${what}`, async () => {
      const { call } = await signIn()
      expect((await call('/admin/session')).status).toBe(200)
      await change()
      expect((await call('/admin/session')).status).toBe(401)
      await undo()
      expect((await call('/admin/session')).status).toBe(401)
    })
})

describe('the issuer is asked again', () => {
  const later = async (minutes: number) => {
    clock.later = minutes * 60_000
    const { context } = latchkey.server
    if (context.page !== undefined) await renewSessions({ ...context, page: context.page })
  }

  test('before the ID token expires, and the session goes on', async () => {
    provider.grants.length = 0
    const { call } = await signIn()
    await later(2)
    expect(provider.grants).toEqual(['authorization_code'])
    await later(6)
    expect(provider.grants).toEqual(['authorization_code', 'refresh_token'])
    clock.later = 9 * 60_000
    expect((await call('/admin/session')).status).toBe(200)
  })

  test('and a person who left the group has no session any longer', async () => {
    const { call } = await signIn()
    provider.people.set('ada', { email: 'ada@example.com', groups: ['viewer'] })
    await later(6)
    expect((await call('/admin/session')).status).toBe(401)
    expect(latchkey.logLines.join('')).toContain('"detail":"operator: condition_false"')
  })

  test('and a session that it has ended is over', async () => {
    const { call } = await signIn()
    const { refreshTokens } = latchkey.server.context
    const [refresh] = [...refreshTokens.values()].slice(-1)
    const basic = { authorization: `Basic ${Buffer.from(`page:${encodeURIComponent(secret)}`).toString('base64')}` }
    const body = new URLSearchParams({ token: refresh ?? '' })
    await fetch(`${provider.issuerUrl}/token/revocation`, { method: 'POST', body, headers: basic })
    await later(6)
    expect((await call('/admin/session')).status).toBe(401)
  })

  test('while it is away, the session lasts as long as the ID token', async () => {
    const { call } = await signIn()
    provider.intercept = (_request, response) => {
      response.destroy()
      return true
    }
    await later(6)
    expect((await call('/admin/session')).status).toBe(200)
    clock.later = 11 * 60_000
    expect((await call('/admin/session')).status).toBe(401)
    const away = await signIn()
    expect(failure(away.opened.url).reason).toBe('unavailable')
  })
})

describe('back-channel logout', () => {
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const claims = (more: object = {}) => ({
    ...{ iss: provider.issuerUrl, aud: 'page', sub: 'ada', jti: crypto.randomUUID(), events },
    ...{ iat: Math.floor(Date.now() / 1_000), exp: Math.floor(Date.now() / 1_000) + 120 },
    ...more,
  })
  const post = (token: string) =>
    fetch(`${pageUrl}sign-in/logout`, { method: 'POST', body: new URLSearchParams({ logout_token: token }) })

  test('of the provider itself ends the session of the page', async () => {
    const { browser, call } = await signIn()
    expect((await call('/admin/session')).status).toBe(200)
    const { action, fields } = readForm(await browser.open(`${provider.issuerUrl}/session/end?client_id=page`))
    fields.set('logout', 'yes')
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    await browser.open(action, { method: 'POST', body: fields.toString(), headers })
    expect((await call('/admin/session')).status).toBe(401)
  })

  test('by subject ends every session of the person, and of nobody else', async () => {
    const [one, other] = [await signIn(), await signIn()]
    provider.people.set('bob', { email: 'bob@example.com', groups: ['viewer'] })
    provider.who = 'bob'
    const bob = await signIn()
    expect((await post(await provider.sign(claims(), { typ: 'logout+jwt' }))).status).toBe(200)
    expect((await one.call('/admin/session')).status).toBe(401)
    expect((await other.call('/admin/session')).status).toBe(401)
    expect((await bob.call('/admin/session')).status).toBe(200)
  })

  const wrong: [what: string, make: () => Promise<string>][] = [
    ['for another client', () => provider.sign(claims({ aud: 'latchkey-cli' }))],
    ['of another issuer', () => provider.sign(claims({ iss: 'https://attacker.example.com' }))],
    ['without the event', () => provider.sign(claims({ events: {} }))],
    ['with a nonce, as an ID token has', () => provider.sign(claims({ nonce: 'n' }))],
    ['that is old', () => provider.sign(claims({ iat: Math.floor(Date.now() / 1_000) - 600 }))],
    ['that has expired', () => provider.sign(claims({ exp: Math.floor(Date.now() / 1_000) - 60 }))],
    ['without subject and session', () => provider.sign(claims({ sub: undefined }))],
    ['of the type of an access token', () => provider.sign(claims(), { typ: 'at+jwt' })],
    ['with another signature', async () => `${(await provider.sign(claims())).slice(0, -8)}AAAAAAAA`],
    ['that is none', async () => 'not a token'],
  ]
  test.each(wrong)('a token %s ends nothing', async (_what, make) => {
    const { call } = await signIn()
    const refused = await post(await make())
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ error: 'invalid_request' })
    expect((await call('/admin/session')).status).toBe(200)
  })
})

describe('an attack of RFC 9700 on the sign-in', () => {
  /** Stops where the issuer sends the browser back. */
  const stopAtReturn = async () => {
    const browser = openPersonBrowser({ isLast: (url) => url.startsWith(`${pageUrl}sign-in/callback`) })
    const { opened } = await signIn(browser)
    return { browser, returned: new URL(opened.url), visited: opened.visited }
  }
  const finish = async (browser: ReturnType<typeof openPersonBrowser>, url: URL) => {
    const cookie = [...(browser.cookies.get('127.0.0.1') ?? [])].map((pair) => pair.join('=')).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    return { status: response.status, location: response.headers.get('location') ?? '', headers: response.headers }
  }

  test('4.2, 4.3, 4.12: the code leaves with a 303, without a Referer, and no address of the page has a secret', async () => {
    const { browser, returned } = await stopAtReturn()
    const { status, location, headers } = await finish(browser, returned)
    expect([status, location]).toEqual([303, pageUrl])
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cache-control')).toBe('no-store')
    const set = headers.getSetCookie()
    expect(set[0]).toMatch(/HttpOnly; SameSite=Strict$/)
    for (const line of latchkey.logLines) expect(line).not.toContain(returned.searchParams.get('code') ?? '')
  })

  test('4.4: an answer that names another issuer', async () => {
    const { browser, returned } = await stopAtReturn()
    returned.searchParams.set('iss', 'https://attacker.example.com')
    expect(failure((await finish(browser, returned)).location).reason).toBe('invalid')
  })

  test('4.5: a code of another sign-in', async () => {
    const [thief, victim] = [await stopAtReturn(), await stopAtReturn()]
    victim.returned.searchParams.set('code', thief.returned.searchParams.get('code') ?? '')
    expect(failure((await finish(victim.browser, victim.returned)).location).reason).toBe('refused_by_issuer')
    expect(await sessions()).toEqual([])
  })

  test('4.7: an answer for another browser, or with a state that was stolen or left out', async () => {
    const { returned } = await stopAtReturn()
    expect(failure((await finish(openPersonBrowser(), returned)).location).reason).toBe('expired')
    const other = await stopAtReturn()
    expect(failure((await finish(other.browser, returned)).location).reason).toBe('invalid')
    other.returned.searchParams.delete('state')
    expect(failure((await finish(other.browser, other.returned)).location).reason).toBe('invalid')
    expect(await sessions()).toEqual([])
  })

  test('4.7: another site begins the sign-in', async () => {
    for (const site of ['cross-site', 'same-site'])
      expect((await fetch(startUrl(), { redirect: 'manual', headers: { 'sec-fetch-site': site } })).status).toBe(403)
  })

  test('4.8: PKCE cannot be left out: every request has a challenge', async () => {
    const { visited } = await stopAtReturn()
    const asked = new URL(visited.find((url) => url.includes('/auth?')) ?? '')
    expect(asked.searchParams.get('code_challenge_method')).toBe('S256')
    expect(asked.searchParams.get('code_challenge')?.length).toBe(43)
  })

  test('4.11: nothing in an address leads elsewhere', async () => {
    const { browser, returned } = await stopAtReturn()
    for (const name of ['redirect_uri', 'next', 'returnTo', 'url'])
      returned.searchParams.set(name, 'https://attacker.example.com/')
    expect((await finish(browser, returned)).location).toBe(pageUrl)
  })

  test('4.14: a code that is used twice', async () => {
    const { browser, returned } = await stopAtReturn()
    expect((await finish(browser, returned)).location).toBe(pageUrl)
    expect(failure((await finish(browser, returned)).location).reason).toBe('refused_by_issuer')
  })

  test('a sign-in that took too long', async () => {
    const { browser, returned } = await stopAtReturn()
    clock.later = 11 * 60_000
    expect(failure((await finish(browser, returned)).location).reason).toBe('expired')
  })

  const swaps: [what: string, claims: (claims: Record<string, unknown>) => object, reason: string][] = [
    ['of another client', (claims) => ({ ...claims, aud: 'latchkey-cli' }), 'invalid'],
    ['whose authorized party is another client', (claims) => ({ ...claims, azp: 'latchkey-cli' }), 'not_allowed'],
    ['for several clients without an authorized party', (claims) => ({ ...claims, aud: ['page', 'other'] }), 'invalid'],
    ['with another nonce', (claims) => ({ ...claims, nonce: 'x'.repeat(43) }), 'invalid'],
    ['without a nonce', ({ nonce: _nonce, ...claims }) => claims, 'invalid'],
    ['of another issuer', (claims) => ({ ...claims, iss: 'https://attacker.example.com' }), 'invalid'],
    ['that has expired', (claims) => ({ ...claims, exp: Math.floor(Date.now() / 1_000) - 600 }), 'invalid'],
  ]
  test.each(swaps)('an ID token %s', async (_what, change, reason) => {
    const { browser, returned } = await stopAtReturn()
    await swapIdToken((claims) => provider.sign(change(claims)))
    expect(failure((await finish(browser, returned)).location).reason).toBe(reason)
    expect(await sessions()).toEqual([])
  })

  test('an ID token with another signature', async () => {
    const { browser, returned } = await stopAtReturn()
    await swapIdToken(async (claims) => `${(await provider.sign(claims)).slice(0, -8)}AAAAAAAA`)
    const { reason, line } = failure((await finish(browser, returned)).location)
    expect([reason, line]).toEqual(['not_allowed', expect.stringContaining('signature_invalid')])
  })
})

/** Lets the token endpoint answer with another ID token, made of the claims that the nonce belongs to. */
async function swapIdToken(make: (claims: Record<string, unknown>) => Promise<string>): Promise<void> {
  const { server } = latchkey
  const send = server.context.outbound.fetch
  server.context.outbound.fetch = async (url, init) => {
    const response = await send(url, init)
    if (!url.endsWith('/token')) return response
    server.context.outbound.fetch = send
    const tokens = (await response.json()) as Record<string, string>
    const claims = JSON.parse(Buffer.from(tokens.id_token?.split('.')[1] ?? '', 'base64url').toString())
    return Response.json({ ...tokens, id_token: await make(claims) })
  }
}
