// `latchkey login` against a real identity provider: both flows, renewal and logout. What others try on the way is in
// ../admin/sign-in-attacks.test.ts.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { loginCommand, logoutCommand } from '../../src/agent/commands/login.ts'
import { signInOnDevice } from '../../src/agent/login/device-flow.ts'
import { discoverProvider } from '../../src/agent/login-provider.ts'
import { readSource } from '../../src/agent/source-options.ts'
import { thisMachine } from '../../src/agent/this-machine.ts'
import { holdProvider } from '../support/held-provider.ts'
import { type Federation, startFederation, temporaryFolder } from '../support/latchkey.ts'
import { commandClient, type PeopleProvider, startPeopleProvider } from '../support/people-provider.ts'
import { openPersonBrowser, readForm } from '../support/person-browser.ts'
import { openMachine, type PersonMachine } from '../support/person-machine.ts'

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
let machine: PersonMachine
beforeEach(() => {
  folder = temporaryFolder()
  machine = openMachine(folder.path, { url, policy })
  provider.people.clear()
  provider.people.set('ada', { email: 'ada@example.com', groups: ['llm-users'] })
  provider.people.set('eve', { email: 'eve@example.com', groups: [] })
  provider.who = 'ada'
  provider.grants.length = 0
  provider.intercept = undefined
})
afterEach(() => folder.remove())

describe('with a browser', () => {
  test('signs in, and token, exec and agent need no option from then on', async () => {
    const { opened, code } = await machine.signIn()
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
    const { opened } = await machine.signIn()
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
        [...machine.printed, ...machine.logged, ...opened.visited, ...readdirSync(machine.stateFolder)].join(),
      ).not.toContain(secret)
    }
    expect(statSync(machine.stateFolder).mode & 0o777).toBe(0o700)
    for (const name of readdirSync(machine.stateFolder))
      expect(statSync(join(machine.stateFolder, name)).mode & 0o777).toBe(0o600)
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
    await expect(machine.signIn()).rejects.toThrow(/identity provider responded with access_denied/)
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
    await machine.signIn()
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
    await machine.signIn()
    await machine.exchange()
    provider.people.set('ada', { email: 'ada@example.com', groups: [] })
    machine.state.later = halfLife
    await expect(machine.exchange()).rejects.toThrow('The subject token was not accepted')
  })

  test('a login that the provider has ended is forgotten, with what to run', async () => {
    await machine.signIn()
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
    await machine.signIn()
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
    await machine.signIn()
    machine.state.later = -halfLife
    await machine.idToken()
    expect(provider.grants).toEqual(['authorization_code', 'refresh_token'])
  })
})

test('logout revokes the refresh token and removes everything', async () => {
  await machine.signIn()
  const [login] = machine.logins()
  expect(await logoutCommand.run({}, [], machine.context)).toBe(0)
  expect(machine.files()).toEqual([])
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

describe('a clock of the machine that is ten minutes', () => {
  /** Moves the times of the ID token instead, since the provider and the server have the clock of this process. */
  const moveTimes = (change: (claims: Record<string, number>) => object) => {
    const { platform } = machine.context
    const { fetch: send } = platform
    platform.fetch = async (address, init) => {
      const response = await send(address, init)
      if (!address.endsWith('/token')) return response
      const tokens = (await response.json()) as Record<string, string>
      const claims = decodeJwt(tokens.id_token ?? '') as Record<string, number>
      return Response.json({ ...tokens, id_token: await provider.sign({ ...claims, ...change(claims) }) })
    }
  }

  test.each([
    ['ahead', ({ iat = 0 }: Record<string, number>) => ({ iat: iat - 4_200, exp: iat - 600 })],
    ['behind', ({ iat = 0 }: Record<string, number>) => ({ nbf: iat + 600 })],
  ])('%s ends the sign-in, says so, and keeps nothing', async (_what, change) => {
    moveTimes(change)
    const failed = machine.signIn()
    await expect(failed).rejects.toMatchObject({ hint: ': check the clock of this machine' })
    expect(machine.logins()).toEqual([])
  })
})

describe('a provider that accepts the connection and never answers', () => {
  const tooLate = /^The identity provider 127\.0\.0\.1:\d+ did not respond within 20 seconds$/

  test('holds up a login for a bounded time, before the browser opens', async () => {
    const { limits, pass } = holdProvider(provider, '/.well-known/')
    const done = machine.login()
    done.catch(() => {})
    await pass()
    await expect(done).rejects.toMatchObject({ code: 'timeout', message: expect.stringMatching(tooLate) })
    // The metadata of the server, and that of the provider.
    expect(limits).toEqual([20_000, 20_000])
    expect(machine.logged).toEqual([])
  })

  test('holds up the return of the browser, which says so too, and keeps nothing', async () => {
    const { done, returned, send, seeEnd } = await machine.stopBeforeReturn()
    const { limits, pass } = holdProvider(provider, '/token')
    const sent = send(returned)
    await pass()
    expect((await sent).status).toBe(303)
    expect(await (await seeEnd()).text()).toContain('You are not signed in')
    await expect(done).rejects.toThrow(tooLate)
    expect(limits).toEqual([20_000])
    expect(machine.logins()).toEqual([])
  })

  test('holds up a renewal, and a token that still counts is used', async () => {
    await machine.signIn()
    const first = await machine.idToken()
    machine.state.later = 50 * 60_000
    const { pass } = holdProvider(provider, '/token')
    const renewing = machine.idToken()
    await pass()
    expect(await renewing).toBe(first)
    provider.intercept = undefined
    await machine.idToken()
    expect(provider.grants).toEqual(['authorization_code', 'refresh_token'])
  })
})
