// Sign-in to the admin page with a real identity provider: who gets which role, and what ends a session. What others try on the way is in
// sign-in-attacks.test.ts.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { renewSessions } from '../../src/admin/sign-in/renewal.ts'
import { issuerFetchMillisecondsMax } from '../../src/limits.ts'
import { holdProvider } from '../support/held-provider.ts'
import { postExchange, type Row } from '../support/latchkey.ts'
import { type PageCall, type PagePeople, pageSecret, signInRoles, startPagePeople } from '../support/page-people.ts'
import { readForm } from '../support/person-browser.ts'

let people: PagePeople
let { provider, latchkey, issuer, pageUrl, clock, signIn, sessions, failure } = {} as PagePeople
beforeAll(async () => {
  people = await startPagePeople()
  ;({ provider, latchkey, issuer, pageUrl, clock, signIn, sessions, failure } = people)
})
afterAll(() => people.stop())
beforeEach(() => people.reset())
afterEach(() => {
  setSystemTime()
})

const now = () => Math.floor(Date.now() / 1_000)
const renewNow = async () => {
  const { context } = latchkey.server
  if (context.page !== undefined) await renewSessions({ ...context, page: context.page })
}
const whoIs = async (call: PageCall) =>
  ((await (await call('/admin/session')).json()) as { data: Record<string, unknown> }).data

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

  test('with a role raises neither it nor that of others', async () => {
    const { call } = await signIn()
    const { admin } = latchkey
    const { hash } = await admin('keys.show', { key: 'admins' })
    const { id: policyId } = await admin('policies.show', { policy: 'operator' })
    const attempts: [method: string, path: string, body: object][] = [
      ['PATCH', `/workload-identity/policies/${policyId}`, { key: 'admins' }],
      ['POST', '/workload-identity/policies', { name: 'mine', issuer: 'staff', key: 'admins', audience: 'page' }],
      ['PATCH', `/workload-identity/issuers/${issuer.id}`, { page_client_id: 'signing' }],
      ['POST', `/keys/${hash}/rotate`, {}],
      ['PATCH', `/keys/${hash}`, { disabled: true }],
      ['DELETE', `/keys/${hash}`, {}],
    ]
    for (const [method, path, body] of attempts) {
      const headers = { 'content-type': 'application/json' }
      const { status } = await call(path, { method, body: JSON.stringify(body), headers })
      expect({ method, path, status }).toEqual({ method, path, status: 403 })
    }
    expect(await whoIs(call)).toMatchObject({ role: 'operator' })
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
  const claims = { iss: provider.issuerUrl, aud: 'page', sub: 'ada', groups: signInRoles, iat: now, exp: now + 60 }
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
    /^Strangers could sign in as admin: .*This token would pass: \{.*"email_verified":true/,
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
    await renewNow()
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
    const basic = { authorization: `Basic ${Buffer.from(`page:${encodeURIComponent(pageSecret)}`).toString('base64')}` }
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

describe('with private_key_jwt', () => {
  const usual = { page_client_id: 'page', page_authentication: 'secret', page_secret: pageSecret }
  afterAll(() => latchkey.admin('issuers.update', { issuer: 'staff', ...usual }))
  const use = async (client: string) => {
    await latchkey.admin('issuers.update', {
      ...{ issuer: 'staff', page_client_id: client, page_authentication: 'private_key_jwt', page_secret: null },
    })
    const policy = { name: `as ${crypto.randomUUID()}`, issuer: 'staff', key: 'viewers', audience: client }
    await latchkey.admin('policies.create', { ...policy, condition: '"viewer" in claims.groups' })
  }

  test('the page signs in and renews with a key of its key set, also after a rotation', async () => {
    await use('signing')
    const sent: URLSearchParams[] = []
    const { outbound } = latchkey.server.context
    const send = outbound.fetch
    outbound.fetch = (url, init) => {
      if (url.endsWith('/token')) sent.push(new URLSearchParams(String(init.body)))
      return send(url, init)
    }
    const { call, opened } = await signIn()
    expect(opened.url).toBe(pageUrl)
    expect(await whoIs(call)).toMatchObject({ role: 'viewer', person: { subject: 'ada' } })
    await latchkey.admin('signing_keys.rotate', {})
    // The provider keeps the key set for five minutes by its own clock, which is that of this process.
    setSystemTime(Date.now() + 7 * 60_000)
    await renewNow()
    expect((await signIn()).opened.url).toBe(pageUrl)
    outbound.fetch = send
    expect(provider.grants).toEqual(['authorization_code', 'refresh_token', 'authorization_code'])
    const kids = sent.map((form) => decodeProtectedHeader(form.get('client_assertion') ?? '').kid)
    expect(new Set(kids).size).toBe(2)
    for (const form of sent) {
      expect(form.get('client_secret')).toBeNull()
      const assertion = form.get('client_assertion') ?? ''
      expect(decodeJwt(assertion)).toMatchObject({ iss: 'signing', sub: 'signing', aud: provider.issuerUrl })
      const asToken = await call('/keys', { headers: { authorization: `Bearer ${assertion}`, cookie: '' } })
      expect(asToken.status).toBe(401)
    }
  })

  test('a provider that does not know the newest key yet ends no session', async () => {
    await use('signing')
    const { call } = await signIn()
    await latchkey.admin('signing_keys.rotate', { at_once: true })
    clock.later = 7 * 60_000
    await renewNow()
    expect(provider.grants.at(-1)).toBe('refused refresh_token invalid_client')
    expect((await call('/admin/session')).status).toBe(200)
    clock.later = 11 * 60_000
    expect((await call('/admin/session')).status).toBe(401)
  })

  test('a provider that knows another key refuses, and nobody is signed in', async () => {
    await use('mistaken')
    const { reason, line } = failure((await signIn()).opened.url)
    expect([reason, line]).toEqual(['refused_by_issuer', expect.stringContaining('invalid_client')])
    expect(await sessions()).toEqual([])
  })
})

describe('with a longest time since the sign-in at the provider', () => {
  beforeAll(() => latchkey.admin('issuers.update', { issuer: 'staff', page_max_age_seconds: 300 }))
  afterAll(() => latchkey.admin('issuers.update', { issuer: 'staff', page_max_age_seconds: null }))

  test('the session ends after it, although the ID token counts longer and can be renewed', async () => {
    const { call, opened } = await signIn()
    const asked = new URL(opened.visited.find((url) => url.includes('/auth?')) ?? '')
    expect(asked.searchParams.get('max_age')).toBe('300')
    clock.later = 200_000
    await renewNow()
    await renewNow()
    expect(provider.grants).toEqual(['authorization_code', 'refresh_token'])
    expect((await call('/admin/session')).status).toBe(200)
    clock.later = 301_000
    expect((await call('/admin/session')).status).toBe(401)
  })

  test.each([
    ['does not say when that was', ({ auth_time: _time, ...claims }: Record<string, unknown>) => claims],
    ['says that it was longer ago', (claims: Record<string, unknown>) => ({ ...claims, auth_time: now() - 400 })],
    ['says a time that is none', (claims: Record<string, unknown>) => ({ ...claims, auth_time: 'today' })],
  ])('an ID token that %s signs nobody in', async (_what, change) => {
    people.swapIdToken((claims) => provider.sign(change(claims)))
    const { reason, line } = failure((await signIn()).opened.url)
    expect([reason, line]).toEqual(['invalid', expect.stringContaining('auth')])
    expect(await sessions()).toEqual([])
  })
})

describe('a provider that accepts the connection and never answers', () => {
  const tooLate = expect.stringContaining(`it did not answer within ${issuerFetchMillisecondsMax} ms`)

  test('holds up a sign-in for a bounded time, and those who wait for its endpoints ask once', async () => {
    clock.later = 20 * 60_000
    const { limits, pass } = holdProvider(provider, '/.well-known/')
    const waiting = [signIn(), signIn(), signIn()]
    await pass()
    for (const { opened } of await Promise.all(waiting)) {
      const { reason, line } = failure(opened.url)
      expect([reason, line]).toEqual(['unavailable', tooLate])
    }
    expect(limits).toEqual([issuerFetchMillisecondsMax])
    expect(people.asked.length).toBe(1)
    provider.intercept = undefined
    clock.later = 0
    expect((await signIn()).opened.url).toBe(pageUrl)
  })

  test('holds up the return from it for a bounded time, and nobody is half signed in', async () => {
    const { browser, returned } = await people.stopAtReturn()
    const { limits, pass } = holdProvider(provider, '/token')
    const finishing = people.finish(browser, returned)
    await pass()
    const { location, headers } = await finishing
    const { reason, line } = failure(location)
    expect([reason, line]).toEqual(['unavailable', tooLate])
    expect(limits).toEqual([issuerFetchMillisecondsMax])
    expect(headers.getSetCookie()).toEqual([expect.stringContaining('Max-Age=0')])
    expect(await sessions()).toEqual([])
  })

  test('holds up renewals once, however many sessions are due', async () => {
    const [one, other] = [await signIn(), await signIn()]
    clock.later = 6 * 60_000
    people.asked.length = 0
    const { pass } = holdProvider(provider, '/token')
    const renewing = renewNow()
    await pass()
    await renewing
    expect(people.asked.length).toBe(1)
    for (const { call } of [one, other]) expect((await call('/admin/session')).status).toBe(200)
  })
})
