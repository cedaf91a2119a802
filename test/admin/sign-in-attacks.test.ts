// The attacks of RFC 9700 §4, one by one, and those of a shared machine: on the sign-in to the admin page, and on `latchkey login`. Each row
// says what we do, and tries it; a sentence in place of a test says why the attack has nothing to attack.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { chooseOffer, readOffers } from '../../src/agent/login/offers.ts'
import { findIdToken } from '../../src/agent/login-token.ts'
import { postExchange, temporaryFolder } from '../support/latchkey.ts'
import { cookieOf, type PagePeople, signInRoles, startPagePeople } from '../support/page-people.ts'
import { commandClient } from '../support/people-provider.ts'
import { openPersonBrowser } from '../support/person-browser.ts'
import { openMachine, type PersonMachine } from '../support/person-machine.ts'

type Attack = {
  /** Of RFC 9700; without one, it is about a machine that several users share. */
  section?: string
  name: string
  we: string
  page: (() => Promise<void>) | string
  command: (() => Promise<void>) | string
}

const attacker = 'https://attacker.example.com'
let people: PagePeople
let { provider, latchkey, pageUrl, clock, asked, signIn, sessions, stopAtReturn, finish, failure } = {} as PagePeople
let policy: string
let folder: ReturnType<typeof temporaryFolder>
let machine: PersonMachine
beforeAll(async () => {
  people = await startPagePeople([commandClient])
  ;({ provider, latchkey, pageUrl, clock, asked, signIn, sessions, stopAtReturn, finish, failure } = people)
  const { admin } = latchkey
  await admin('keys.create', { name: 'developers' })
  await admin('issuers.update', { issuer: 'staff', login_client_id: 'latchkey-cli' })
  const created = await admin('policies.create', {
    ...{ name: 'developers', issuer: 'staff', key: 'developers', audience: 'latchkey-cli' },
    condition: '"viewer" in claims.groups',
  })
  policy = created.id
})
afterAll(() => people.stop())
beforeEach(async () => {
  await people.reset()
  folder = temporaryFolder()
  machine = openMachine(folder.path, { url: latchkey.server.baseUrl, policy })
})
afterEach(() => folder.remove())

/** Everything that the command or the server has written where others may look. */
const written = () => [...latchkey.logLines, ...machine.printed, ...machine.logged].join('\n')
const refusedAtPage = async (change: (returned: URL) => void, reason = 'invalid') => {
  const { browser, returned } = await stopAtReturn()
  change(returned)
  expect(failure((await finish(browser, returned)).location).reason).toBe(reason)
  expect(await sessions()).toEqual([])
}
const refusedAtCommand = async (change: (returned: URL) => void, message: RegExp) => {
  const { done, returned, send, seeEnd } = await machine.stopBeforeReturn()
  const forged = new URL(returned)
  change(forged)
  await send(forged)
  await seeEnd()
  await expect(done).rejects.toThrow(message)
  expect(machine.logins()).toEqual([])
}
const authorizationRequest = (visited: readonly string[]) =>
  new URL(visited.find((url) => url.includes('/auth?')) ?? '').searchParams

/** Lets the token endpoint lead to another server, which notes what it gets. */
async function redirectTokenEndpoint(status: number) {
  const got: string[] = []
  const other = createServer((request, response) => {
    got.push(request.url ?? '')
    response.end('{}')
  })
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const location = `http://127.0.0.1:${(other.address() as AddressInfo).port}/token`
  provider.intercept = ({ url = '' }, response) => {
    if (url === '/token') response.writeHead(status, { location }).end()
    return url === '/token'
  }
  return { got, stop: () => new Promise((resolve) => other.close(resolve)) }
}

/** Changes the metadata of the provider. */
async function describeProvider(change: (metadata: Record<string, unknown>) => object) {
  const metadata = (await (await fetch(`${provider.issuerUrl}/.well-known/openid-configuration`)).json()) as object
  provider.intercept = ({ url = '' }, response) => {
    if (!url.startsWith('/.well-known/')) return false
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(change({ ...metadata })))
    return true
  }
  // The server forgets what it knew of an issuer that is saved.
  for (const clock_skew_seconds of [31, 30])
    await latchkey.admin('issuers.update', { issuer: 'staff', clock_skew_seconds })
}

const attacks: Attack[] = [
  {
    section: '4.1',
    name: 'insufficient validation of the redirect URI',
    we: 'send one URI, of the settings or of this machine, whatever a request or a server says',
    page: async () => {
      const browser = openPersonBrowser({ isLast: (url) => url.startsWith(provider.issuerUrl) })
      const lure = `${people.startUrl()}?redirect_uri=${encodeURIComponent(attacker)}`
      const headers = { 'sec-fetch-site': 'same-origin', origin: attacker, 'x-forwarded-host': 'attacker.example.com' }
      const { url } = await browser.open(lure, { headers })
      expect(authorizationRequest([url]).get('redirect_uri')).toBe(`${pageUrl}sign-in/callback`)
    },
    command: async () => {
      const offer = { policy: 'p', issuer: 'https://idp.example.com', client_id: 'cli' }
      for (const redirect_uri of [
        attacker,
        'http://127.0.0.1.attacker.example.com/',
        'https://127.0.0.1/',
        'javascript:1',
      ]) {
        const document = { resource: 'https://llm.example.com/v1', latchkey_logins: [{ ...offer, redirect_uri }] }
        const offers = await readOffers(document.resource, async () => Response.json(document))
        expect(() => chooseOffer(offers, '', document.resource)).toThrow('offers no login')
      }
    },
  },
  {
    section: '4.2',
    name: 'credentials in a Referer',
    we: 'forbid the header wherever an address holds a code, and load nothing of others there',
    page: async () => {
      const { browser, returned } = await stopAtReturn()
      const { headers, status } = await finish(browser, returned)
      expect([status, headers.get('referrer-policy')]).toEqual([303, 'no-referrer'])
      expect((await fetch(pageUrl)).headers.get('referrer-policy')).toBe('no-referrer')
    },
    command: async () => {
      const { done, returned, send, seeEnd } = await machine.stopBeforeReturn()
      expect((await send(returned)).headers.get('referrer-policy')).toBe('no-referrer')
      expect((await seeEnd()).headers.get('referrer-policy')).toBe('no-referrer')
      await done
    },
  },
  {
    section: '4.3',
    name: 'credentials in the history of the browser',
    we: 'replace the address with the code at once, and never put a token in an address',
    page: async () => {
      const { opened } = await signIn()
      expect(opened.url).toBe(pageUrl)
      const code = new URL(opened.visited.find((url) => url.includes('code=')) ?? '').searchParams.get('code') ?? '-'
      expect(written()).not.toContain(code)
      for (const url of opened.visited) expect(url).not.toMatch(/token=|ey[\w-]+\.ey/)
    },
    command: async () => {
      const { opened } = await machine.signIn()
      expect(opened.url).toMatch(/\/signed-in$/)
      const code = new URL(opened.visited.find((url) => url.includes('code=')) ?? '').searchParams.get('code') ?? '-'
      const { refreshToken = '-', idToken = '-' } = machine.logins()[0] ?? {}
      for (const secret of [code, refreshToken, idToken]) {
        expect(secret.length).toBeGreaterThan(20)
        expect([written(), opened.url, ...readdirSync(machine.stateFolder)].join('\n')).not.toContain(secret)
      }
      for (const url of opened.visited) expect(url).not.toMatch(/token=|ey[\w-]+\.ey/)
    },
  },
  {
    section: '4.4',
    name: 'mix-up of issuers',
    we: 'bind a sign-in to one issuer before it begins, and refuse a return of another one or of none (RFC 9207)',
    page: async () => {
      await refusedAtPage((returned) => returned.searchParams.set('iss', attacker))
      await refusedAtPage((returned) => returned.searchParams.delete('iss'))
      expect(provider.grants).toEqual([])
    },
    command: async () => {
      await refusedAtCommand((returned) => returned.searchParams.set('iss', attacker), /unexpected "iss"/)
      machine = openMachine(folder.path, { url: latchkey.server.baseUrl, policy })
      await refusedAtCommand((returned) => returned.searchParams.delete('iss'), /"iss".*missing/)
      expect(provider.grants).toEqual([])
    },
  },
  {
    section: '4.4',
    name: 'metadata of another issuer',
    we: 'refuse metadata whose issuer is another one',
    page: async () => {
      await describeProvider((metadata) => ({ ...metadata, issuer: attacker, token_endpoint: `${attacker}/token` }))
      expect(failure((await signIn()).opened.url).reason).toBe('invalid')
      expect(asked.every((url) => url.startsWith(provider.issuerUrl))).toBe(true)
    },
    command: async () => {
      await describeProvider((metadata) => ({ ...metadata, issuer: attacker, token_endpoint: `${attacker}/token` }))
      await expect(machine.login()).rejects.toThrow(/read the settings/)
    },
  },
  {
    section: '4.5',
    name: 'injection of a stolen code',
    we: 'bind each code to a verifier (PKCE) and a nonce that only one sign-in has',
    page: async () => {
      const [thief, victim] = [await stopAtReturn(), await stopAtReturn()]
      victim.returned.searchParams.set('code', thief.returned.searchParams.get('code') ?? '')
      expect(failure((await finish(victim.browser, victim.returned)).location).reason).toBe('refused_by_issuer')
      expect(await sessions()).toEqual([])
    },
    command: async () => {
      const { returned } = await machine.stopBeforeReturn()
      const stolen = new URL(returned).searchParams.get('code') ?? ''
      machine = openMachine(folder.path, { url: latchkey.server.baseUrl, policy })
      await refusedAtCommand((own) => own.searchParams.set('code', stolen), /invalid_grant/)
    },
  },
  {
    section: '4.5',
    name: 'a code that is used twice',
    we: 'take one return for one sign-in; the provider takes one code',
    page: async () => {
      const { browser, returned } = await stopAtReturn()
      expect((await finish(browser, returned)).location).toBe(pageUrl)
      expect(failure((await finish(browser, returned)).location).reason).toBe('refused_by_issuer')
    },
    command: async () => {
      const { done, returned, send, seeEnd } = await machine.stopBeforeReturn()
      expect([(await send(returned)).status, (await send(returned)).status]).toEqual([303, 400])
      await seeEnd()
      expect([await done, provider.grants]).toEqual([0, ['authorization_code']])
    },
  },
  {
    section: '4.6',
    name: 'injection of a token',
    we: 'take tokens from the token endpoint alone, and of the ID token check nonce, audience, authorized party, issuer, times and signature',
    page: async () => {
      const now = Math.floor(Date.now() / 1_000)
      const own = { iss: provider.issuerUrl, aud: 'page', sub: 'ada', groups: signInRoles, iat: now, exp: now + 60 }
      const token = await provider.sign(own)
      await refusedAtPage((returned) => {
        returned.searchParams.delete('code')
        for (const name of ['id_token', 'access_token']) returned.searchParams.set(name, token)
      })
      const swaps: [change: (claims: Record<string, unknown>) => object, reason: string][] = [
        [(claims) => ({ ...claims, aud: 'latchkey-cli' }), 'invalid'],
        [(claims) => ({ ...claims, azp: 'latchkey-cli' }), 'not_allowed'],
        [(claims) => ({ ...claims, aud: ['page', 'other'] }), 'invalid'],
        [(claims) => ({ ...claims, nonce: 'x'.repeat(43) }), 'invalid'],
        [({ nonce: _nonce, ...claims }) => claims, 'invalid'],
        [(claims) => ({ ...claims, iss: attacker }), 'invalid'],
        [(claims) => ({ ...claims, exp: now - 600 }), 'invalid'],
      ]
      for (const [change, reason] of swaps) {
        people.swapIdToken((claims) => provider.sign(change(claims)))
        await refusedAtPage(() => {}, reason)
      }
      people.swapIdToken(async (claims) => `${(await provider.sign(claims)).slice(0, -8)}AAAAAAAA`)
      await refusedAtPage(() => {}, 'not_allowed')
    },
    command: () =>
      refusedAtCommand((returned) => {
        returned.searchParams.delete('code')
        returned.searchParams.set('access_token', 'stolen')
      }, /no authorization code/),
  },
  {
    section: '4.7',
    name: 'cross-site request forgery',
    we: 'begin at the page or at a link that works once, and take back only the browser that began, with its state',
    page: async () => {
      for (const site of ['cross-site', 'same-site'])
        expect(
          (await fetch(people.startUrl(), { redirect: 'manual', headers: { 'sec-fetch-site': site } })).status,
        ).toBe(403)
      const { returned } = await stopAtReturn()
      expect(failure((await finish(openPersonBrowser(), returned)).location).reason).toBe('expired')
      await refusedAtPage((forged) => forged.searchParams.delete('state'))
      await refusedAtPage((forged) => forged.searchParams.set('state', returned.searchParams.get('state') ?? ''))
    },
    command: async () => {
      const { done, returned, send, seeEnd } = await machine.stopBeforeReturn()
      for (const change of [
        (address: URL) => address.searchParams.set('state', 'x'.repeat(43)),
        (address: URL) => address.searchParams.delete('state'),
        (address: URL) => Object.assign(address, { pathname: '/other' }),
      ]) {
        const forged = new URL(returned)
        change(forged)
        expect((await send(forged)).status).toBe(400)
      }
      // The sign-in of the person goes on.
      expect((await send(returned)).status).toBe(303)
      await seeEnd()
      expect(await done).toBe(0)
    },
  },
  {
    section: '4.8',
    name: 'downgrade of PKCE',
    we: 'send a challenge with S256 to every provider, whatever its metadata lists',
    page: async () => {
      await describeProvider((metadata) => ({ ...metadata, code_challenge_methods_supported: ['plain'] }))
      const sent = authorizationRequest((await stopAtReturn()).visited)
      expect([sent.get('code_challenge_method'), sent.get('code_challenge')?.length]).toEqual(['S256', 43])
      expect((await signIn()).opened.url).toBe(pageUrl)
    },
    command: async () => {
      await describeProvider((metadata) => ({ ...metadata, code_challenge_methods_supported: [] }))
      const { opened, code } = await machine.signIn()
      const sent = authorizationRequest(opened.visited)
      expect([sent.get('code_challenge_method'), sent.get('code_challenge')?.length]).toEqual(['S256', 43])
      expect(code).toBe(0)
    },
  },
  {
    section: '4.9',
    name: 'a counterfeit resource server gets a token',
    we: 'send tokens of the provider to the provider and to the server that the person named, and nowhere else',
    page: async () => {
      await signIn()
      expect(asked.length).toBeGreaterThan(0)
      for (const url of asked) expect(url).toStartWith(`${provider.issuerUrl}/`)
    },
    command: async () => {
      const resource = `${attacker}/v1`
      const counterfeit = async () => Response.json({ resource: latchkey.server.baseUrl, latchkey_logins: [] })
      await expect(readOffers(resource, counterfeit)).rejects.toThrow('says that it is')
      await machine.signIn()
      const other = findIdToken({ url: resource, policy }, machine.dependencies)
      await expect(other).rejects.toThrow('Nobody is signed in')
    },
  },
  {
    section: '4.10',
    name: 'use of stolen tokens',
    we: 'take no token of the provider as a credential, and give access tokens 15 minutes and inference alone',
    page: async () => {
      let stolen = ''
      people.swapIdToken(async (claims) => {
        stolen = await provider.sign(claims)
        return stolen
      })
      const { call } = await signIn()
      expect((await call('/admin/session')).status).toBe(200)
      const headers = { authorization: `Bearer ${stolen}` }
      expect((await fetch(`${latchkey.server.baseUrl}/keys`, { headers })).status).toBe(401)
      const exchanged = await postExchange(latchkey.server.baseUrl, {
        federation_policy_id: policy,
        subject_token: stolen,
      })
      expect(await exchanged.json()).toMatchObject({ error: 'invalid_grant' })
    },
    command: async () => {
      await machine.signIn()
      const { text, expiresAt } = await machine.exchange()
      expect(expiresAt - Date.now()).toBeLessThanOrEqual(15 * 60_000)
      const statusOf = async (path: string, init: RequestInit = {}) =>
        (await fetch(`${latchkey.server.baseUrl}${path}`, { ...init, headers: { authorization: `Bearer ${text}` } }))
          .status
      expect([await statusOf('/key'), await statusOf('/keys'), await statusOf('/admin/session')]).toEqual([
        200, 403, 403,
      ])
    },
  },
  {
    section: '4.11',
    name: 'open redirect',
    we: 'redirect to the provider and to our own page, and read no address from a request',
    page: async () => {
      const { browser, returned } = await stopAtReturn()
      for (const name of ['redirect_uri', 'next', 'returnTo', 'url']) returned.searchParams.set(name, attacker)
      expect((await finish(browser, returned)).location).toBe(pageUrl)
    },
    command: async () => {
      const { done, link } = await machine.begin()
      const started = await fetch(`${link}?next=${encodeURIComponent(attacker)}`, { redirect: 'manual' })
      expect(started.headers.get('location')).toStartWith(`${provider.issuerUrl}/auth?`)
      expect(started.headers.get('location')).not.toContain('attacker')
      await fetch(link, { redirect: 'manual' })
      await fetch(new URL('/signed-in', link))
      await expect(done).rejects.toThrow('opened twice')
    },
  },
  {
    section: '4.12',
    name: 'redirect with status 307',
    we: 'redirect with 303, and follow no redirect of the provider with a code or credential',
    page: async () => {
      const { browser, returned } = await stopAtReturn()
      const { got, stop } = await redirectTokenEndpoint(307)
      const { status, location } = await finish(browser, returned)
      expect([status, failure(location).reason]).toEqual([303, 'invalid'])
      expect(got).toEqual([])
      await stop()
    },
    command: async () => {
      const { got, stop } = await redirectTokenEndpoint(307)
      await refusedAtCommand(() => {}, /redirect, which is not followed/)
      expect(got).toEqual([])
      await stop()
    },
  },
  {
    section: '4.13',
    name: 'headers that a TLS proxy passes on',
    we: 'take origin, cookie and redirect URI from the settings',
    page: async () => {
      const headers = {
        ...{
          'sec-fetch-site': 'same-origin',
          'x-forwarded-proto': 'https',
          'x-forwarded-host': 'attacker.example.com',
        },
        forwarded: 'host=attacker.example.com;proto=https',
      }
      const started = await fetch(people.startUrl(), { redirect: 'manual', headers })
      expect(started.headers.get('location')).not.toContain('attacker')
      expect(started.headers.get('set-cookie')).toMatch(/^latchkey-sign-in-\d+=.*HttpOnly; SameSite=Lax$/)
    },
    command: 'The command talks to the server itself, and its listener takes only its own host and port.',
  },
  {
    section: '4.14',
    name: 'replay of a refresh token',
    we: 'rotate it; keep it in memory (page) or in a file of the user (command), and end the login when it was used twice',
    page: async () => {
      await signIn()
      const [refreshToken = '-'] = [...latchkey.server.context.refreshTokens.values()].slice(-1)
      expect(refreshToken.length).toBeGreaterThan(20)
      const stored = await latchkey.server.context.database.client.execute('select * from sessions')
      expect(JSON.stringify(stored.rows)).not.toContain(refreshToken)
      expect(written()).not.toContain(refreshToken)
    },
    command: async () => {
      await machine.signIn()
      const stolen = machine.logins()[0]?.refreshToken ?? ''
      for (const name of readdirSync(machine.stateFolder))
        expect(statSync(join(machine.stateFolder, name)).mode & 0o777).toBe(0o600)
      machine.state.later = 8 * 60_000
      await machine.idToken()
      expect(machine.logins()[0]?.refreshToken).not.toBe(stolen)
      const form = { client_id: 'latchkey-cli', grant_type: 'refresh_token', refresh_token: stolen }
      const replayed = await fetch(`${provider.issuerUrl}/token`, { method: 'POST', body: new URLSearchParams(form) })
      expect(await replayed.json()).toMatchObject({ error: 'invalid_grant' })
      machine.state.later = 16 * 60_000
      await expect(machine.idToken()).rejects.toThrow('has ended')
      expect(machine.logins()).toEqual([])
    },
  },
  {
    section: '4.15',
    name: 'a client that passes for a person',
    we: 'want an ID token with the nonce of a browser, which no client gets for itself',
    page: async () => {
      people.swapIdToken(({ iss, aud, iat, exp }) =>
        provider.sign({ iss, aud, iat, exp, sub: 'page', groups: signInRoles }),
      )
      await refusedAtPage(() => {})
    },
    command: async () => {
      const now = Math.floor(Date.now() / 1_000)
      const claims = { iss: provider.issuerUrl, aud: provider.issuerUrl, sub: 'latchkey-cli', groups: signInRoles }
      const subject_token = await provider.sign({ ...claims, iat: now, exp: now + 60 })
      const refused = await postExchange(latchkey.server.baseUrl, { federation_policy_id: policy, subject_token })
      expect(await refused.json()).toMatchObject({ error: 'invalid_grant' })
    },
  },
  {
    section: '4.16',
    name: 'clickjacking',
    we: 'let no site frame the page, and show nothing to click at the end of a login',
    page: async () => {
      expect((await fetch(pageUrl)).headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    },
    command: async () => {
      const { done, returned, send, seeEnd } = await machine.stopBeforeReturn()
      await send(returned)
      const { headers } = await seeEnd()
      expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'")
      expect(headers.get('content-type')).toStartWith('text/plain')
      await done
    },
  },
  {
    section: '4.17',
    name: 'messages between windows',
    we: 'pass nothing between windows of different origins, and leave no opener',
    page: async () => {
      expect((await fetch(pageUrl)).headers.get('cross-origin-opener-policy')).toBe('same-origin')
      const assets = join(import.meta.dirname, '../../src/page/assets')
      const texts = readdirSync(assets)
        .filter((name) => name.endsWith('.js'))
        .map((name) => readFileSync(join(assets, name), 'utf8'))
      // BroadcastChannel stays in the origin.
      for (const text of texts)
        expect(text).not.toMatch(
          /\bopener\b|window\.postMessage|parent\.postMessage|(?<!tabs\.)addEventListener\('message'/,
        )
    },
    command: 'Its pages are plain text, so no script runs in them (see 4.16).',
  },
  {
    name: 'another user listens at the port',
    we: 'take a free port when the sign-in begins, and open no browser where a fixed one is taken',
    page: 'The page has no listener on the machine of the person.',
    command: async () => {
      const other = createServer()
      await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
      const login_redirect_uri = `http://127.0.0.1:${(other.address() as AddressInfo).port}/callback`
      await latchkey.admin('issuers.update', { issuer: 'staff', login_redirect_uri })
      await expect(machine.login()).rejects.toThrow('cannot listen')
      expect(machine.logged.join()).not.toContain('/start/')
      await latchkey.admin('issuers.update', { issuer: 'staff', login_redirect_uri: null })
      await new Promise((resolve) => other.close(resolve))
    },
  },
  {
    name: 'another user or program calls the listener',
    we: 'want the cookie of the browser, the state and the own host name',
    page: 'The page has no listener on the machine of the person.',
    command: async () => {
      const { done, returned, send, seeEnd } = await machine.stopBeforeReturn()
      expect((await send(returned, {})).status).toBe(400)
      expect((await send(returned, { host: 'attacker.example' })).status).toBe(403)
      expect((await send(returned)).status).toBe(303)
      await seeEnd()
      expect([await done, provider.grants]).toEqual([0, ['authorization_code']])
    },
  },
  {
    name: 'another user reads the link in the process list',
    we: 'give the browser a link that works once and has no state, and end a sign-in whose link was opened twice',
    page: 'The page starts no program.',
    command: async () => {
      const { done, link } = await machine.begin()
      const started = await fetch(link, { redirect: 'manual' })
      const sent = new URL(started.headers.get('location') ?? '').searchParams
      for (const name of ['state', 'nonce', 'code_challenge']) expect(link).not.toContain(sent.get(name) ?? '')
      expect((await fetch(link, { redirect: 'manual' })).status).toBe(410)
      await fetch(new URL('/signed-in', link))
      await expect(done).rejects.toThrow('was opened twice')
      expect(machine.logins()).toEqual([])
    },
  },
  {
    name: 'a stolen sign-in that somebody goes on with later',
    we: 'end each after ten minutes, and read it only from the cookie that we sealed',
    page: async () => {
      const { browser, returned } = await stopAtReturn()
      clock.later = 11 * 60_000
      expect(failure((await finish(browser, returned)).location).reason).toBe('expired')
      clock.later = 0
      const [[name = '', sealed = ''] = []] = [...(browser.cookies.get('127.0.0.1') ?? [])].filter(([each]) =>
        each.includes('sign-in'),
      )
      for (const cookie of [`${name}=${sealed.slice(0, -4)}AAAA`, `${cookieOf(browser)}; ${name}=${sealed}`]) {
        const { headers } = await fetch(returned, { redirect: 'manual', headers: { cookie } })
        expect(failure(headers.get('location') ?? '').reason).toBe('expired')
      }
      expect(await sessions()).toEqual([])
    },
    command: 'The command keeps a sign-in in its own memory, which ends with it after ten minutes.',
  },
]

const sections = Array.from({ length: 17 }, (_, index) => `4.${index + 1}`)

test('every attack of RFC 9700 §4 has a row', () => {
  expect([...new Set(attacks.flatMap(({ section = [] }) => section))]).toEqual(sections)
})

describe.each(['page', 'command'] as const)('on the sign-in of the %s', (target) => {
  for (const { section, name, we, [target]: attack } of attacks)
    if (typeof attack !== 'string') test(`${section ?? 'shared machine'}: ${name}; we ${we}`, attack)
})
