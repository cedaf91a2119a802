// People who sign in to the admin page: a server whose page is a client of an identity provider, and a policy for each role. It acts as their
// browsers do.
import { generateKeyPairSync } from 'node:crypto'
import { createSignInRate } from '../../src/page/sign-in-rate.ts'
import { type Row, startTestServer, type TestServer } from './latchkey.ts'
import { type PeopleProvider, startPeopleProvider } from './people-provider.ts'
import { openPersonBrowser, type PersonBrowser } from './person-browser.ts'

export const signInRoles = ['viewer', 'auditor', 'operator', 'admin'] as const
export const pageSecret = 'the secret of the page'

export type PageCall = (path: string, init?: RequestInit) => Promise<Response>
export type PagePeople = {
  provider: PeopleProvider
  latchkey: TestServer
  /** The issuer `staff`. */
  issuer: Row
  pageUrl: string
  /** How far the clock of the server is ahead. */
  clock: { later: number }
  /** The addresses that the server asked, in order. */
  asked: string[]
  startUrl: () => string
  sessions: () => Promise<Row[]>
  /** Signs in as a browser does, and calls the API as the page does. */
  signIn: (browser?: PersonBrowser) => Promise<SignedIn>
  /** Stops where the issuer sends the browser back. */
  stopAtReturn: () => Promise<{ browser: PersonBrowser; returned: URL; visited: string[] }>
  /** Returns from the issuer to the page. */
  finish: (browser: PersonBrowser, returned: URL) => Promise<{ status: number; location: string; headers: Headers }>
  /** Lets the token endpoint answer once with another ID token, made of the claims that the nonce belongs to. */
  swapIdToken: (make: (claims: Record<string, unknown>) => Promise<string>) => void
  /** Why a sign-in failed: what the page is given, and the line of the log. */
  failure: (url: string) => { reason: string | null; line: string }
  /** Ends all sessions, and puts people, clock and rates back. */
  reset: () => Promise<void>
  stop: () => Promise<void>
}
type SignedIn = { browser: PersonBrowser; opened: Awaited<ReturnType<PersonBrowser['open']>>; call: PageCall }

/** `more`: other clients of the provider. */
export async function startPagePeople(more: object[] = []): Promise<PagePeople> {
  const clock = { later: 0 }
  const latchkey = await startTestServer({ dependencies: { now: () => Date.now() + clock.later } })
  const { pageUrl = '' } = latchkey.server
  const clients = [pageClient(pageUrl), ...signingClients(pageUrl), ...more]
  const provider = await startPeopleProvider({ clients, idTokenSeconds: 600 })
  const issuer = await addStaff(latchkey, provider.issuerUrl)
  const asked: string[] = []
  const { outbound } = latchkey.server.context
  const send = outbound.fetch
  outbound.fetch = (url, init) => {
    asked.push(url)
    return send(url, init)
  }
  const startUrl = () => `${pageUrl}sign-in/with/${issuer.id}`
  const sessions = async () => (await latchkey.admin<{ data: Row[] }>('sessions.list')).data
  const signIn = async (browser = openPersonBrowser()) => {
    const opened = await browser.open(startUrl(), { headers: { 'sec-fetch-site': 'same-origin' } })
    return { browser, opened, call: callerOf(latchkey, browser) }
  }
  const reset = async () => {
    clock.later = 0
    asked.length = 0
    const { page } = latchkey.server.context
    if (page !== undefined) page.signInRate = createSignInRate()
    for (const { id } of await sessions()) await latchkey.admin('sessions.end', { session: id })
    provider.people.clear()
    provider.people.set('ada', { email: 'ada@example.com', groups: ['viewer', 'operator'] })
    provider.people.set('eve', { email: 'eve@example.com', groups: [] })
    provider.grants.length = 0
    provider.who = 'ada'
    provider.intercept = undefined
  }
  return {
    ...{ provider, latchkey, issuer, pageUrl, clock, asked, startUrl, sessions, signIn, reset },
    stopAtReturn: async () => {
      const browser = openPersonBrowser({ isLast: (url) => url.startsWith(`${pageUrl}sign-in/callback`) })
      const { opened } = await signIn(browser)
      return { browser, returned: new URL(opened.url), visited: opened.visited }
    },
    finish: async (browser, returned) => {
      const response = await fetch(returned, { redirect: 'manual', headers: { cookie: cookieOf(browser) } })
      return { status: response.status, location: response.headers.get('location') ?? '', headers: response.headers }
    },
    swapIdToken: (make) => {
      const before = outbound.fetch
      outbound.fetch = async (url, init) => {
        const response = await before(url, init)
        if (!url.endsWith('/token')) return response
        outbound.fetch = before
        const tokens = (await response.json()) as Record<string, string>
        const claims = JSON.parse(Buffer.from(tokens.id_token?.split('.')[1] ?? '', 'base64url').toString())
        return Response.json({ ...tokens, id_token: await make(claims) })
      }
    },
    failure: (url) => {
      const given = new URLSearchParams(new URL(url).hash.split('?')[1])
      const line = latchkey.logLines.findLast((each) => each.includes(String(given.get('request'))))
      return { reason: given.get('failed'), line: line ?? '' }
    },
    stop: async () => {
      await latchkey.stop()
      await provider.stop()
    },
  }
}

function pageClient(pageUrl: string): object {
  return {
    ...{ client_id: 'page', client_secret: pageSecret, token_endpoint_auth_method: 'client_secret_basic' },
    ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
    redirect_uris: [`${pageUrl}sign-in/callback`],
    ...{ backchannel_logout_uri: `${pageUrl}sign-in/logout`, backchannel_logout_session_required: true },
  }
}

/** `signing` knows the key set of the server; `mistaken` has the key of somebody else. */
function signingClients(pageUrl: string): object[] {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const own = { jwks_uri: new URL('/v1/oauth/jwks', pageUrl).href }
  const foreign = { jwks: { keys: [{ ...publicKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig' }] } }
  return Object.entries({ signing: own, mistaken: foreign }).map(([client_id, keys]) => ({
    ...{
      client_id,
      ...keys,
      token_endpoint_auth_method: 'private_key_jwt',
      redirect_uris: [`${pageUrl}sign-in/callback`],
    },
    ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
  }))
}

async function addStaff({ admin }: TestServer, issuerUrl: string): Promise<Row> {
  for (const role of signInRoles) await admin('keys.create', { name: `${role}s`, role })
  const issuer = await admin('issuers.add', {
    ...{ name: 'staff', issuer_url: issuerUrl, shared: false, page_client_id: 'page' },
    ...{ page_authentication: 'secret', page_secret: pageSecret },
  })
  for (const role of signInRoles)
    await admin('policies.create', {
      ...{ name: role, issuer: 'staff', key: `${role}s`, audience: 'page' },
      condition: `"${role}" in claims.groups`,
    })
  return issuer
}

/** The cookies that the browser sends to this machine. */
export function cookieOf({ cookies }: PersonBrowser): string {
  return [...(cookies.get('127.0.0.1') ?? [])].map((pair) => pair.join('=')).join('; ')
}

function callerOf({ server }: TestServer, browser: PersonBrowser): PageCall {
  return (path, init = {}) => {
    const headers = {
      cookie: cookieOf(browser),
      'sec-fetch-site': 'same-origin',
      origin: new URL(server.baseUrl).origin,
    }
    return fetch(`${server.baseUrl}${path}`, { ...init, headers: { ...headers, ...init.headers } })
  }
}
