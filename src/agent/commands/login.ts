// `latchkey login` and `latchkey logout`: a person signs in with the identity provider of a server, and out again. What is kept for them is
// in ../login-files.ts.
import { spawn } from 'node:child_process'
import type { TokenEndpointResponse } from 'oauth4webapi'
import { Fault } from '../../fault.ts'
import { forgetAccessToken, tokenSource } from '../access-token.ts'
import { checkBaseUrl, exchangeToken } from '../exchange.ts'
import { withFileLock } from '../file-lock.ts'
import { signInWithBrowser } from '../login/browser-flow.ts'
import { signInOnDevice } from '../login/device-flow.ts'
import { chooseOffer, type Offer, readOffers } from '../login/offers.ts'
import { revoke } from '../login/revocation.ts'
import { type Login, listLogins, loginPath, openLoginFolder, removeLogin, writeLogin } from '../login-files.ts'
import { type ClientSettings, discoverProvider, type Provider } from '../login-provider.ts'
import { lifetimeOf } from '../login-token.ts'
import type { GivenOptions } from '../source-options.ts'
import { readClaims } from '../unverified-claims.ts'
import { type AgentCommand, type AgentContext, commonOptions, readSecret } from './command.ts'

const urlOperand = '[url]'
const policyOption = {
  name: 'policy',
  value: 'policy',
  help: 'name or id of the policy, where the server offers several logins',
}
const usualScopes = ['openid', 'profile', 'email']

export const loginCommand: AgentCommand = {
  name: 'login',
  description: 'Sign in with the identity provider of a server, for token, exec and agent',
  operands: urlOperand,
  options: [
    policyOption,
    { name: 'device', help: 'show a code to enter on another device, instead of opening a browser here' },
    {
      name: 'client-secret',
      value: 'source',
      help: 'the secret of the client, where the issuer gives programs one (Google): env:NAME or file:PATH',
    },
    { name: 'status', help: 'show who is signed in where, and sign in nowhere; exit code 1 if nobody is' },
    { name: 'insecure-http', help: 'allow an http:// URL of a different machine; for tests only' },
    ...commonOptions,
  ],
  examples: ['login https://llm.example.com/v1', 'login https://llm.example.com/v1 --device', 'login --status'],
  notes: `The browser opens at a page of the identity provider. On a machine without one, over SSH for example, the command shows an address
and a code. The tokens are kept in $XDG_STATE_HOME/latchkey (by default ~/.local/state/latchkey), where only you can read them, and are
renewed when they are used. After that, "latchkey exec -- COMMAND" needs no key and no option.`,
  run: async (given, [text], context) => {
    if (given.status !== undefined) return showStatus(given, text, context)
    const url = readUrl(given, text, context)
    const { platform, now } = context
    const offer = chooseOffer(await readOffers(url, platform.fetch), given.policy ?? '', url)
    const clientSecret = await readSecret(given['client-secret'], 'client-secret', context)
    const settings = { clientId: offer.clientId, clientSecret }
    const provider = await discoverProvider(offer.issuer, platform.fetch)
    let login: Login | undefined
    const finish = async (tokens: TokenEndpointResponse) => {
      login = await keepLogin({ url, offer, provider, settings, tokens }, context)
    }
    const scope = scopeFor(offer, provider)
    if (given.device !== undefined || (!hasBrowser(platform.environment) && hasDeviceFlow(provider)))
      await finish(await signInOnDevice(provider, settings, { scope, show: context.log }))
    else {
      const open = (link: string) => openBrowser(link, context)
      await signInWithBrowser(provider, settings, { scope, redirectUri: offer.redirectUri, open, finish })
    }
    if (login === undefined) throw new Error('The sign-in ended without a login')
    if (given.json !== undefined) context.print(JSON.stringify(describe(login, now()), null, 2))
    else context.print(`Signed in to ${url} as ${login.name}. Try: latchkey exec -- COMMAND`)
    return 0
  },
}

export const logoutCommand: AgentCommand = {
  name: 'logout',
  description: 'Sign out of a server, and revoke what was kept',
  operands: urlOperand,
  options: [policyOption, { name: 'all', help: 'everything: sign out of every server' }, ...commonOptions],
  examples: ['logout', 'logout https://llm.example.com/v1', 'logout --all'],
  notes: `The refresh token is revoked at the identity provider, where it can be (RFC 7009), and removed from this machine. Access tokens that
were issued stay valid until they expire, for 15 minutes at most.`,
  run: async (given, [text], context) => {
    const { environment } = context.platform
    const all = listLogins(environment)
    const found = given.all === undefined ? pickLogins(all, given, text) : all
    if (found.length === 0) throw new Fault('not_found', 'Nobody is signed in here')
    let isRevoked = true
    for (const login of found) isRevoked = (await endLogin(login, context)) && isRevoked
    const urls = found.map(({ url }) => url)
    context.print(
      given.json === undefined ? `Signed out of ${urls.join(', ')}` : JSON.stringify({ signed_out: urls }, null, 2),
    )
    if (!isRevoked)
      context.log(
        'latchkey: the identity provider could not revoke a login, which ends there in time; nothing is kept here',
      )
    return 0
  },
}

/** Nothing is kept until the server has accepted the token. */
async function keepLogin({ url, offer, provider, settings, tokens }: NewLogin, context: AgentContext): Promise<Login> {
  const { platform, now, userAgent } = context
  const { id_token: idToken, refresh_token: refreshToken } = tokens
  if (idToken === undefined)
    throw new Fault('bad_gateway', 'The identity provider sent no ID token', {
      hint: ': ask an administrator to add the scope openid to the login',
    })
  const { sub, email, preferred_username } = readClaims(idToken)
  const login: Login = {
    url,
    policy: offer.policy,
    issuer: offer.issuer,
    clientId: offer.clientId,
    ...(settings.clientSecret === undefined ? {} : { clientSecret: settings.clientSecret }),
    name: nameOf([email, preferred_username, sub]),
    subject: String(sub),
    idToken,
    ...lifetimeOf(idToken, now()),
    ...(refreshToken === undefined ? {} : { refreshToken }),
    signedInAt: now(),
  }
  try {
    await exchangeToken({ url, policy: offer.policy, subjectToken: idToken }, { fetch: platform.fetch, now, userAgent })
  } catch (error) {
    await revoke(login, provider).catch(() => {})
    throw error
  }
  await openLoginFolder(platform.environment)
  await withFileLock(`${loginPath(platform.environment, login)}.lock`, () => writeLogin(platform.environment, login))
  return login
}

type NewLogin = {
  url: string
  offer: Offer
  provider: Provider
  settings: ClientSettings
  tokens: TokenEndpointResponse
}

function nameOf(claims: readonly unknown[]): string {
  const text = claims.find((claim) => typeof claim === 'string' && claim !== '')
  return String(text)
    .replaceAll(/\p{Cc}/gu, '')
    .slice(0, 200)
}

/** Returns whether nothing is left at the provider either. */
async function endLogin(login: Login, { platform }: AgentContext): Promise<boolean> {
  const { url, policy } = login
  // Its place follows from the login. A token that cannot be removed expires, and must not keep anybody signed in.
  await forgetAccessToken(
    tokenSource({ url, policy, identity: { kind: 'login', url, policy }, allowsHttp: true }),
    platform,
  ).catch(() => {})
  await removeLogin(platform.environment, login)
  try {
    await revoke(login, await discoverProvider(login.issuer, platform.fetch))
    return true
  } catch {
    return false
  }
}

function readUrl(given: GivenOptions, text: string | undefined, { platform }: AgentContext): string {
  const url = text ?? platform.environment.LATCHKEY_URL ?? ''
  if (url === '')
    throw new Fault('usage', 'The URL of the server is missing', {
      hint: ', for example: latchkey login https://llm.example.com/v1',
    })
  return checkBaseUrl(url, { allowsHttp: given['insecure-http'] !== undefined })
}

function pickLogins(all: readonly Login[], given: GivenOptions, text: string | undefined): Login[] {
  const fitting = all.filter(
    ({ url, policy }) =>
      (text === undefined || url === text.replace(/\/+$/, '')) &&
      (given.policy === undefined || policy === given.policy),
  )
  if (text === undefined && given.policy === undefined && fitting.length > 1)
    throw new Fault('usage', 'You are signed in to several servers: name one, or use --all', {
      hint: fitting.map(({ url, policy }) => `\n  ${url} --policy ${policy}`).join(''),
    })
  return fitting
}

function showStatus(given: GivenOptions, text: string | undefined, { platform, now, print }: AgentContext): number {
  const found = pickForStatus(listLogins(platform.environment), text)
  if (given.json !== undefined) print(JSON.stringify({ data: found.map((login) => describe(login, now())) }, null, 2))
  else if (found.length === 0) print('Nobody is signed in here. Run: latchkey login URL')
  else
    for (const login of found)
      print(
        `${login.url}  ${login.name}  ${login.issuer}  signed in ${new Date(login.signedInAt).toISOString()}, ${lasts(login, now())}`,
      )
  return found.length === 0 ? 1 : 0
}

const pickForStatus = (all: Login[], text: string | undefined) =>
  text === undefined ? all : all.filter(({ url }) => url === text.replace(/\/+$/, ''))

function lasts({ refreshToken, expiresAt }: Login, now: number): string {
  if (refreshToken !== undefined) return 'renewed when it is used'
  return expiresAt > now ? `ends ${new Date(expiresAt).toISOString()}` : 'ended: run latchkey login again'
}

function describe(
  { url, policy, issuer, name, subject, refreshToken, expiresAt, signedInAt }: Login,
  now: number,
): object {
  return {
    ...{ url, policy, issuer, name, subject },
    signed_in_at: new Date(signedInAt).toISOString(),
    expires_at: refreshToken === undefined ? new Date(expiresAt).toISOString() : null,
    usable: refreshToken !== undefined || expiresAt > now,
  }
}

/** Without this scope many providers give no refresh token; those that do not list it refuse it (OpenID Connect Core 1.0 §11). */
function scopeFor({ scopes }: Offer, { server }: Provider): string {
  if (scopes !== null) return scopes
  const isListed = server.scopes_supported?.includes('offline_access') === true
  return [...usualScopes, ...(isListed ? ['offline_access'] : [])].join(' ')
}

const hasDeviceFlow = ({ server }: Provider) => server.device_authorization_endpoint !== undefined

type Environment = AgentContext['platform']['environment']

function hasBrowser({ BROWSER, DISPLAY, WAYLAND_DISPLAY, SSH_CONNECTION }: Environment): boolean {
  if ((BROWSER ?? '') !== '') return true
  if ((SSH_CONNECTION ?? '') !== '') return false
  return process.platform !== 'linux' || (DISPLAY ?? '') !== '' || (WAYLAND_DISPLAY ?? '') !== ''
}

/** The link has no secret of the identity provider, and works once. */
function openBrowser(link: string, { platform, log }: AgentContext): void {
  log(`If the browser does not open, open this link on this machine:\n  ${link}`)
  const { BROWSER = '' } = platform.environment
  if (!hasBrowser(platform.environment)) return
  const openers: Partial<Record<string, string[]>> = { darwin: ['open'], win32: ['cmd', '/c', 'start', ''] }
  const [program = 'xdg-open', ...args] = BROWSER === '' ? (openers[process.platform] ?? ['xdg-open']) : [BROWSER]
  const child = spawn(program, [...args, link], { stdio: 'ignore', detached: true })
  child.on('error', () => log('latchkey: the browser could not be opened'))
  child.unref()
}
