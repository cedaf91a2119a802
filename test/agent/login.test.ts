// `latchkey login` against a real identity provider: both flows, renewal, logout, and what others try on the way.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { exchangeIdentity } from '../../src/agent/access-token.ts'
import type { AgentContext } from '../../src/agent/commands/command.ts'
import { loginCommand, logoutCommand } from '../../src/agent/commands/login.ts'
import { signInOnDevice } from '../../src/agent/login/device-flow.ts'
import { listLogins } from '../../src/agent/login-files.ts'
import { discoverProvider } from '../../src/agent/login-provider.ts'
import { findIdToken } from '../../src/agent/login-token.ts'
import { type GivenOptions, readSource } from '../../src/agent/source-options.ts'
import { thisMachine } from '../../src/agent/this-machine.ts'
import { type Federation, startFederation, temporaryFolder } from '../support/latchkey.ts'
import { commandClient, type PeopleProvider, startPeopleProvider } from '../support/people-provider.ts'
import { openPersonBrowser, readForm } from '../support/person-browser.ts'
import { until } from '../support/until.ts'

let provider: PeopleProvider
let latchkey: Federation
let url: string
let policy: string
beforeAll(async () => {
  provider = await startPeopleProvider({ clients: [commandClient] })
  latchkey = await startFederation()
  url = latchkey.server.baseUrl
  const { admin } = latchkey
  await admin('keys.create', { name: 'developers' })
  await admin('issuers.add', {
    ...{ name: 'staff', issuer_url: provider.issuerUrl, shared: false, login_client_id: 'latchkey-cli' },
  })
  const created = await admin('policies.create', {
    ...{ name: 'developers', issuer: 'staff', key: 'developers', audience: 'latchkey-cli' },
    condition: '"llm-users" in claims.groups',
  })
  policy = created.id
})
afterAll(async () => {
  await latchkey.stop()
  await provider.stop()
})

let folder: ReturnType<typeof temporaryFolder>
let machine: ReturnType<typeof openMachine>
beforeEach(() => {
  folder = temporaryFolder()
  machine = openMachine()
  provider.people.clear()
  provider.people.set('ada', { email: 'ada@example.com', groups: ['llm-users'] })
  provider.people.set('eve', { email: 'eve@example.com', groups: [] })
  provider.who = 'ada'
  provider.grants.length = 0
  provider.intercept = undefined
})
afterEach(() => folder.remove())

/** A user's account on a machine, with a clock that the test moves. `true` stands for a browser: the test is the browser. */
function openMachine() {
  const state = { later: 0 }
  const now = () => Date.now() + state.later
  const environment = { XDG_STATE_HOME: folder.path, XDG_RUNTIME_DIR: folder.path, BROWSER: 'true' }
  const dependencies = { environment, fetch: thisMachine.fetch, now }
  const [printed, logged]: [string[], string[]] = [[], []]
  const context: AgentContext = {
    platform: { ...thisMachine, environment, findIdToken: (login) => findIdToken(login, dependencies) },
    now,
    userAgent: 'test',
    print: (text) => printed.push(text),
    log: (line) => logged.push(line),
  }
  return {
    ...{ state, context, printed, logged, dependencies },
    login: (given: GivenOptions = {}, at = url) => loginCommand.run(given, [at], context),
    logins: () => listLogins(environment),
    exchange: () => exchangeIdentity(readSource({}, context), context),
    idToken: () => findIdToken({ url, policy }, dependencies),
    link: async () => {
      const find = () => /http:\S+\/start\/\S+/.exec(logged.join('\n'))?.[0]
      await until('the link', () => find() !== undefined)
      return find() ?? ''
    },
  }
}

/** Signs in with the browser, as the person does. */
async function signIn(given: GivenOptions = {}) {
  const done = machine.login(given)
  done.catch(() => {})
  const opened = await openPersonBrowser().open(await machine.link())
  return { opened, code: await done }
}

const stateFolder = () => join(folder.path, 'latchkey')
const texts = () => readdirSync(stateFolder()).map((name) => readFileSync(join(stateFolder(), name), 'utf8'))

describe('with a browser', () => {
  test('signs in, and token, exec and agent need no option from then on', async () => {
    const { opened, code } = await signIn()
    expect(code).toBe(0)
    expect(opened).toMatchObject({ status: 200, text: expect.stringContaining('You are signed in') })
    expect(machine.printed).toEqual([expect.stringContaining('as ada@example.com')])
    const { text } = await machine.exchange()
    const models = await fetch(`${url}/models`, { headers: { authorization: `Bearer ${text}` } })
    expect(models.status).toBe(200)
    await loginCommand.run({ status: 'true', json: 'true' }, [], machine.context)
    expect(JSON.parse(machine.printed.at(-1) ?? '')).toEqual({
      data: [
        expect.objectContaining({
          url,
          policy,
          name: 'ada@example.com',
          subject: 'ada',
          usable: true,
          expires_at: null,
        }),
      ],
    })
  })

  test('asks with PKCE, state and nonce, and leaves no code or token in an address, line or name of a file', async () => {
    const { opened } = await signIn()
    const asked = new URL(opened.visited.find((each) => each.includes('/auth?')) ?? '')
    const sent = Object.fromEntries(asked.searchParams)
    expect(sent).toMatchObject({
      ...{ response_type: 'code', client_id: 'latchkey-cli', code_challenge_method: 'S256' },
      scope: 'openid profile email offline_access',
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/),
    })
    for (const name of ['state', 'nonce', 'code_challenge']) expect(sent[name]?.length).toBeGreaterThan(40)
    // The link that the process list shows says nothing, and the address with the code is replaced.
    expect(opened.visited[0]).not.toContain(sent.state ?? '')
    expect(opened.url).toMatch(/\/signed-in$/)
    const [login] = machine.logins()
    const secrets = [login?.refreshToken ?? '', login?.idToken ?? '']
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(20)
      expect(
        [...machine.printed, ...machine.logged, ...opened.visited, ...readdirSync(stateFolder())].join(),
      ).not.toContain(secret)
    }
    expect(statSync(stateFolder()).mode & 0o777).toBe(0o700)
    for (const name of readdirSync(stateFolder())) expect(statSync(join(stateFolder(), name)).mode & 0o777).toBe(0o600)
  })

  test('keeps nothing of a person whom the policy refuses, and revokes what was issued', async () => {
    provider.who = 'eve'
    let revoked = 0
    provider.intercept = ({ url: path = '' }) => {
      if (path.includes('revocation')) revoked += 1
      return false
    }
    const done = machine.login()
    done.catch(() => {})
    const opened = await openPersonBrowser().open(await machine.link())
    await expect(done).rejects.toThrow('The subject token was not accepted')
    expect(opened.text).toContain('You are not signed in')
    expect(machine.logins()).toEqual([])
    expect(revoked).toBe(1)
  })

  test('says so when the person cancels', async () => {
    provider.who = undefined
    await expect(signIn()).rejects.toThrow(/identity provider responded with access_denied/)
    expect(machine.logins()).toEqual([])
  })
})

/** Begins a sign-in, and stops before the browser returns to the machine. */
async function stopBeforeReturn() {
  const done = machine.login()
  done.catch(() => {})
  const link = await machine.link()
  const browser = openPersonBrowser({ isLast: (each) => each.includes('/callback?') })
  const { url: returned } = await browser.open(link)
  return { done, link, browser, returned }
}

/** The page that says how it ended, for which the command waits. */
const seeEnd = (returned: string) => fetch(new URL('/signed-in', returned))

describe('on the way of the browser', () => {
  test.each([
    ['another state', (address: URL) => address.searchParams.set('state', 'x'.repeat(43))],
    ['no state', (address: URL) => address.searchParams.delete('state')],
    ['another path', (address: URL) => Object.assign(address, { pathname: '/other' })],
  ])('a return with %s is not taken, and the sign-in goes on', async (_what, change) => {
    const { done, browser, returned } = await stopBeforeReturn()
    const forged = new URL(returned)
    change(forged)
    const cookie = [...(browser.cookies.get('127.0.0.1') ?? [])].map((pair) => pair.join('=')).join('; ')
    const refused = await fetch(forged, { redirect: 'manual', headers: { cookie } })
    expect(refused.status).toBe(400)
    expect((await fetch(returned, { redirect: 'manual', headers: { cookie } })).status).toBe(303)
    await seeEnd(returned)
    expect(await done).toBe(0)
  })

  test('a return from another browser or program is not taken, even with the right state and code', async () => {
    const { done, browser, returned } = await stopBeforeReturn()
    expect((await fetch(returned, { redirect: 'manual' })).status).toBe(400)
    const rebound = await fetch(returned, { redirect: 'manual', headers: { host: 'attacker.example' } })
    expect(rebound.status).toBe(403)
    const cookie = [...(browser.cookies.get('127.0.0.1') ?? [])].map((pair) => pair.join('=')).join('; ')
    const again = () => fetch(returned, { redirect: 'manual', headers: { cookie } })
    expect((await again()).status).toBe(303)
    // The code was used.
    expect((await again()).status).toBe(400)
    await seeEnd(returned)
    expect(await done).toBe(0)
    expect(provider.grants).toEqual(['authorization_code'])
  })

  test('a link that somebody else opens ends the sign-in', async () => {
    const done = machine.login()
    done.catch(() => {})
    const link = await machine.link()
    expect((await fetch(link, { redirect: 'manual' })).status).toBe(303)
    expect((await fetch(link, { redirect: 'manual' })).status).toBe(410)
    await seeEnd(link)
    await expect(done).rejects.toThrow('was opened twice')
    expect(machine.logins()).toEqual([])
  })

  test('an answer that names another issuer is refused (RFC 9207)', async () => {
    const { done, browser, returned } = await stopBeforeReturn()
    const mixed = new URL(returned)
    expect(mixed.searchParams.get('iss')).toBe(provider.issuerUrl)
    mixed.searchParams.set('iss', 'https://attacker.example.com')
    const cookie = [...(browser.cookies.get('127.0.0.1') ?? [])].map((pair) => pair.join('=')).join('; ')
    await fetch(mixed, { redirect: 'manual', headers: { cookie } })
    await seeEnd(returned)
    await expect(done).rejects.toThrow(/unexpected "iss"/)
    expect(provider.grants).toEqual([])
    expect(machine.logins()).toEqual([])
  })

  test('a code that was stolen and put into the sign-in of another person is refused', async () => {
    const { returned } = await stopBeforeReturn()
    const stolen = new URL(returned).searchParams.get('code') ?? ''
    machine = openMachine()
    const victim = await stopBeforeReturn()
    const injected = new URL(victim.returned)
    injected.searchParams.set('code', stolen)
    const cookie = [...(victim.browser.cookies.get('127.0.0.1') ?? [])].map((pair) => pair.join('=')).join('; ')
    await fetch(injected, { redirect: 'manual', headers: { cookie } })
    await seeEnd(victim.returned)
    await expect(victim.done).rejects.toThrow('invalid_grant')
    expect(machine.logins()).toEqual([])
  })
})

describe('on a machine without a browser', () => {
  /** Enters the code on another device, and confirms it there. */
  const enterCode = async (address: string): Promise<void> => {
    const browser = openPersonBrowser()
    const { action, fields } = readForm(await browser.open(address))
    fields.set('confirm', 'yes')
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const confirmed = await browser.open(action, { method: 'POST', body: fields.toString(), headers })
    expect(confirmed.status).toBe(200)
  }
  const begin = async (lines: string[], sleep: (milliseconds: number) => Promise<unknown>) =>
    signInOnDevice(
      await discoverProvider(provider.issuerUrl, thisMachine.fetch),
      { clientId: 'latchkey-cli' },
      { scope: 'openid email', show: (line) => lines.push(line), sleep },
    )
  const addressIn = (lines: readonly string[]) => /or open (\S+)/.exec(lines.join('\n'))?.[1] ?? ''

  test('a code on another device signs in, and the provider says how often it may be asked', async () => {
    const lines: string[] = []
    let slowDowns = 1
    provider.intercept = ({ url: path = '' }, response) => {
      if (!path.endsWith('/token') || slowDowns-- <= 0) return false
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"slow_down"}')
      return true
    }
    const waits: number[] = []
    const tokens = await begin(lines, async (milliseconds) => {
      waits.push(milliseconds)
      if (waits.length === 3) await enterCode(addressIn(lines))
    })
    expect(lines[0]).toMatch(/^Open http:\S+ on any device, and enter the code [A-Z]{4}-[A-Z]{4}$/)
    expect(waits).toEqual([5_000, 10_000, 10_000])
    expect(tokens.id_token).toMatch(/^ey/)
  })

  test('ends when the code has expired, or the provider answers otherwise', async () => {
    await expect(begin([], async () => {})).rejects.toThrow(/before the code expired/)
    provider.intercept = ({ url: path = '' }, response) => {
      if (path.endsWith('/token'))
        response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"access_denied"}')
      return path.endsWith('/token')
    }
    await expect(begin([], async () => {})).rejects.toThrow('access_denied')
  })
})

describe('renewal', () => {
  const halfLife = 50 * 60_000

  test('uses the refresh token once for callers that ask together, and the rotated one the next time', async () => {
    await signIn()
    const first = await machine.idToken()
    const { refreshToken } = machine.logins()[0] ?? {}
    expect(first).toBe(machine.logins()[0]?.idToken ?? '')
    machine.state.later = halfLife
    const renewed = await Promise.all(Array.from({ length: 20 }, () => machine.idToken()))
    expect(new Set(renewed).size).toBe(1)
    expect(provider.grants).toEqual(['authorization_code', 'refresh_token'])
    expect(machine.logins()[0]?.refreshToken).not.toBe(refreshToken)
    machine.state.later = 2 * halfLife
    await machine.idToken()
    expect(provider.grants).toEqual(['authorization_code', 'refresh_token', 'refresh_token'])
  })

  test('a person who has left the group gets no further token', async () => {
    await signIn()
    await machine.exchange()
    provider.people.set('ada', { email: 'ada@example.com', groups: [] })
    machine.state.later = halfLife
    await expect(machine.exchange()).rejects.toThrow('The subject token was not accepted')
  })

  test('a login that the provider has ended is forgotten, with what to run', async () => {
    await signIn()
    const [login] = machine.logins()
    const client = { client_id: 'latchkey-cli', token: login?.refreshToken ?? '' }
    await fetch(`${provider.issuerUrl}/token/revocation`, { method: 'POST', body: new URLSearchParams(client) })
    machine.state.later = halfLife
    const failed = machine.idToken()
    await expect(failed).rejects.toMatchObject({
      message: expect.stringContaining('has ended'),
      hint: expect.stringContaining(`latchkey login ${url}`),
    })
    expect(machine.logins()).toEqual([])
    await expect(machine.idToken()).rejects.toThrow('Nobody is signed in')
  })

  test.each([
    ['is away', (_: unknown, response: { destroy: () => void }) => response.destroy()],
    [
      'fails',
      (_: unknown, response: { writeHead: (status: number) => { end: (text: string) => void } }) =>
        response.writeHead(500).end('no'),
    ],
  ])('while the provider %s, a token that still counts is used, and the login stays', async (_how, answer) => {
    await signIn()
    const first = await machine.idToken()
    provider.intercept = (request, response) => {
      answer(request, response)
      return true
    }
    machine.state.later = halfLife
    expect(await machine.idToken()).toBe(first)
    machine.state.later = 2 * halfLife
    await expect(machine.idToken()).rejects.toThrow(/identity provider|read the settings/)
    provider.intercept = undefined
    await machine.idToken()
    expect(provider.grants).toEqual(['authorization_code', 'refresh_token'])
  })

  test('a clock that was set back does not keep an old token alive', async () => {
    await signIn()
    machine.state.later = -halfLife
    await machine.idToken()
    expect(provider.grants).toEqual(['authorization_code', 'refresh_token'])
  })
})

test('logout revokes the refresh token and removes everything', async () => {
  await signIn()
  const [login] = machine.logins()
  expect(await logoutCommand.run({}, [], machine.context)).toBe(0)
  expect(texts()).toEqual([])
  const client = { client_id: 'latchkey-cli', grant_type: 'refresh_token', refresh_token: login?.refreshToken ?? '' }
  const used = await fetch(`${provider.issuerUrl}/token`, { method: 'POST', body: new URLSearchParams(client) })
  expect(await used.json()).toMatchObject({ error: 'invalid_grant' })
  expect(() => readSource({}, machine.context)).toThrow('LATCHKEY_URL is not set')
})

test('a server that claims to be another one, or offers nothing, is named', async () => {
  const { admin } = latchkey
  await admin('issuers.update', { issuer: 'staff', login_client_id: null })
  await expect(machine.login()).rejects.toThrow('offers no login')
  await admin('issuers.update', { issuer: 'staff', login_client_id: 'latchkey-cli' })
  await expect(machine.login({}, url.replace('127.0.0.1', 'localhost'))).rejects.toThrow('says that it is')
}, 30_000)
