// Sign-in with the browser of this machine: authorization code with PKCE, and a redirect to a port of this machine (RFC 8252, RFC 7636).
// The browser starts at a link of that port, which works once and leaves a cookie. So neither the process list nor a link that others
// see holds `state`, and a callback from another browser or program is not taken.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import * as oauth from 'oauth4webapi'
import { Fault } from '../../fault.ts'
import { authenticationOf, type ClientSettings, clientOf, explained, type Provider } from '../login-provider.ts'
import { listenOnLoopback, type Serve } from './loopback.ts'

const waitMillisecondsMax = 10 * 60_000
/** The browser asks for the page that says how it ended. */
const farewellMilliseconds = 2_000

type BrowserFlow = {
  scope: string
  /** `http://` to this machine; without a port, a free one is taken (RFC 8252 §7.3). */
  redirectUri: string
  /** Shows the link, and opens it where a browser is. */
  open: (link: string) => void
  /** Judges the tokens before the browser shows that the sign-in worked. */
  finish: (tokens: oauth.TokenEndpointResponse) => Promise<void>
}

type Outcome = { fault: Fault | undefined }

/** What one sign-in has that no other has. */
type Attempt = {
  state: string
  nonce: string
  verifier: string
  /** The link that the browser opens, and the cookie that it gets there. */
  start: string
  cookie: string
  /** Where the browser returns to, also as the text that providers compare. */
  redirect: URL
  redirectText: string
}

/** Resolves when `finish` has. Throws its fault, or that of the sign-in. */
export async function signInWithBrowser(
  provider: Provider,
  settings: ClientSettings,
  { scope, redirectUri, open, finish }: BrowserFlow,
): Promise<void> {
  const listening = await listenOnLoopback(new URL(redirectUri))
  try {
    const attempt = createAttempt(redirectUri, listening.port)
    const location = await authorizationUrl(provider, settings, scope, attempt)
    const exchange = async (url: URL) => finish(await exchangeCode(provider, settings, attempt, url))
    const outcome = serveAttempt(attempt, location, exchange, listening.serve)
    open(`${attempt.redirect.origin}/start/${attempt.start}`)
    const { fault } = await outcome
    if (fault !== undefined) throw fault
  } finally {
    listening.close()
  }
}

function createAttempt(redirectUri: string, port: number): Attempt {
  const redirect = new URL(redirectUri)
  redirect.port = String(port)
  return {
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    verifier: oauth.generateRandomCodeVerifier(),
    start: randomBytes(16).toString('base64url'),
    cookie: `latchkey-login-${port}=${randomBytes(32).toString('base64url')}`,
    redirect,
    // A bare host stays bare.
    redirectText: redirect.pathname === '/' && !redirectUri.endsWith('/') ? redirect.origin : redirect.href,
  }
}

/** Checks `state` and `iss` (RFC 9207), then `nonce` and the rest of the ID token. */
async function exchangeCode(
  { server, options }: Provider,
  settings: ClientSettings,
  { state, nonce, verifier, redirectText }: Attempt,
  url: URL,
): Promise<oauth.TokenEndpointResponse> {
  const client = clientOf(settings)
  const parameters = oauth.validateAuthResponse(server, client, url, state)
  const request = [server, client, authenticationOf(settings), parameters, redirectText, verifier, options] as const
  const response = await oauth.authorizationCodeGrantRequest(...request)
  return oauth.processAuthorizationCodeResponse(server, client, response, {
    expectedNonce: nonce,
    requireIdToken: true,
  })
}

/** Serves the link, the return and the farewell; each only once and in this order. Resolves when the browser has seen how it ended. */
function serveAttempt(
  { state, start, cookie, redirect }: Attempt,
  location: string,
  exchange: (url: URL) => Promise<void>,
  serve: (handle: Serve) => void,
): Promise<Outcome> {
  let phase: 'new' | 'started' | 'returned' = 'new'
  let ended: Outcome | undefined
  return new Promise<Outcome>((resolve) => {
    const end = (fault: Fault | undefined) => {
      ended ??= { fault }
      // It must not hold up the end of the command when the browser has asked.
      setTimeout(resolve, farewellMilliseconds, ended).unref()
    }
    setTimeout(() => end(notInTime()), waitMillisecondsMax).unref()
    serve(async ({ method, headers, url: path = '/' }, response) => {
      const url = new URL(path, redirect)
      if (headers.host !== redirect.host || method !== 'GET') return refuse(response, 403)
      if (url.pathname === '/signed-in' && ended !== undefined) {
        showOutcome(response, ended.fault)
        return resolve(ended)
      }
      if (url.pathname === `/start/${start}`) {
        if (phase === 'new') {
          phase = 'started'
          const flags = 'HttpOnly; SameSite=Lax; Path=/; Max-Age=600'
          return redirectTo(response, location, { 'set-cookie': `${cookie}; ${flags}` })
        }
        end(openedTwice())
        return refuse(response, 410)
      }
      // What another browser or program sends does not end the sign-in of this one.
      const isOwn = (headers.cookie ?? '').split(/; */).some((pair) => isSame(pair, cookie))
      const isReturn = url.pathname === redirect.pathname && phase === 'started'
      if (!isReturn || !isOwn || !isSame(url.searchParams.get('state') ?? '', state)) return refuse(response, 400)
      phase = 'returned'
      await explained('sign in', () => exchange(url)).then(
        () => end(undefined),
        (fault: Fault) => end(fault),
      )
      // The address with the code leaves the history of the browser.
      return redirectTo(response, '/signed-in')
    })
  })
}

async function authorizationUrl(
  { server }: Provider,
  { clientId }: ClientSettings,
  scope: string,
  { redirectText, state, nonce, verifier }: Attempt,
): Promise<string> {
  if (server.authorization_endpoint === undefined)
    throw new Fault('bad_gateway', 'The identity provider has no authorization endpoint', {
      hint: ': use --device where it has a device flow',
    })
  const url = new URL(server.authorization_endpoint)
  const fields = {
    ...{ response_type: 'code', client_id: clientId, redirect_uri: redirectText, scope, state, nonce },
    ...{ code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
  }
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value)
  return url.href
}

const headers = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'content-type': 'text/plain; charset=utf-8',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

function redirectTo(response: ServerResponse, location: string, more: Record<string, string> = {}): void {
  response.writeHead(303, { ...headers, ...more, location }).end()
}

function refuse(response: ServerResponse, status: number): void {
  response
    .writeHead(status, headers)
    .end('This is not the sign-in that latchkey login began. Run latchkey login again.\n')
}

function showOutcome(response: ServerResponse, fault: Fault | undefined): void {
  const text =
    fault === undefined
      ? 'You are signed in. You can close this window and return to the terminal.'
      : `You are not signed in. ${fault.message}. The terminal says what to do.`
  response.writeHead(fault === undefined ? 200 : 400, headers).end(`${text}\n`)
}

/** Compares in a time that does not depend on the texts. */
function isSame(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.byteLength === right.byteLength && timingSafeEqual(left, right)
}

function openedTwice(): Fault {
  return new Fault('forbidden', 'The link of the sign-in was opened twice, perhaps by another program or user', {
    hint: ': run latchkey login again, and open the link once',
  })
}

function notInTime(): Fault {
  return new Fault('timeout', 'Nobody signed in within 10 minutes', {
    hint: ': run latchkey login again, or use --device on a machine without a browser',
  })
}
