// Turns the Authorization header into who is calling (reference: Credentials): an API key, or an access token acting as
// one. For administration, a session of the admin page counts too.
import type { Organization } from '../../db/schema/schema.ts'
import type { Person } from '../../db/tables/admin-changes.ts'
import { Fault } from '../fault.ts'
import { verifyAccessToken } from '../tokens/access-token.ts'
import { parseJwtText } from '../tokens/jwt-text.ts'
import type { SigningKeys } from '../tokens/signing-keys.ts'
import { compileAllowLists } from './allow-lists.ts'
import { checkKeyState, checkKeyText, hashApiKey, invalidCredential, isApiKeyText, type Key } from './api-key.ts'
import { type Act, checkRole } from './roles.ts'
import type { AccessToken, TokenCache } from './token-cache.ts'

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]

/** What authentication reads from the registry. */
export type KeyRegistry = {
  readonly organizations: ReadonlyMap<string, Readonly<Organization>>
  readonly keys: ReadonlyMap<string, Key>
  readonly keysByHash: { get: (hash: string) => Key | undefined }
  readonly deleted: { keyWithHash: (hash: string) => Promise<Key | undefined> }
}

/** What authentication needs. */
export type BearerContext = {
  registry: KeyRegistry
  verifiedTokens: TokenCache
  signingKeys: SigningKeys
  baseUrl: string
  /** The key, and the session, that each authenticated request acts as. */
  callers: WeakMap<Request, Caller>
  /** The session of a request that provably comes from the admin page. @throws Fault `unauthorized` when it has ended */
  findSession: (request: Request) => { key: Key; row: SessionIdentity } | undefined
  now: () => number
}

/** Of a session. Issuer and subject are those of a person, and null where a key began it. */
export type SessionIdentity = { id: string; issuerUrl: string | null; subject: string | null }

/** `textHash`: of the text that was used, while a text before the rotation of the key works too. */
export type Caller = {
  keyId: string
  sessionId?: string
  person?: Person | undefined
  textHash?: string | undefined
}

/** Whom an issuer signed in, if a session is of a person. */
export function personOf({ issuerUrl, subject }: SessionIdentity): Person | undefined {
  return issuerUrl === null || subject === null ? undefined : { issuer: issuerUrl, subject }
}

/** Who sends a request. `accessToken` is undefined when an API key was used. */
export type Principal = { key: Key; accessToken: AccessToken | undefined; textHash?: string | undefined }

/**
 * The caller, with the state of the key as of the last acknowledged change. At once, unless a signature has to be verified or a deleted key to
 * be read.
 * @throws Fault `unauthorized` for a missing, malformed, unknown, expired or disabled credential
 */
export function authenticate(request: Request, context: BearerContext): Principal | Promise<Principal> {
  const header = headerOf(request)
  if (header === undefined) {
    throw new Fault('unauthorized', 'Missing Authentication header', {
      reason: 'header_missing',
      headers: { 'www-authenticate': 'Bearer' },
    })
  }
  const credential = /^bearer +([A-Za-z0-9._~+/=-]+)$/i.exec(header)?.[1]
  if (credential === undefined)
    throw invalidCredential('header_malformed', {
      message: 'The Authorization header must be "Bearer", a space and one credential',
    })
  const found = isApiKeyText(credential) ? fromApiKey(credential, context) : fromAccessToken(credential, context)
  return found instanceof Promise
    ? found.then((principal) => noteCaller(request, principal, context))
    : noteCaller(request, found, context)
}

function noteCaller(request: Request, principal: Principal, { callers }: Pick<BearerContext, 'callers'>): Principal {
  callers.set(request, { keyId: principal.key.id, textHash: principal.textHash })
  return principal
}

/**
 * The caller of a path that any credential may read, and the admin page. A credential in a header wins over a session.
 * @throws Fault as `authenticate`
 */
export async function authenticateReader(request: Request, context: BearerContext): Promise<Principal> {
  const session = headerOf(request) === undefined ? context.findSession(request) : undefined
  if (session === undefined) return await authenticate(request, context)
  const { key, row } = session
  context.callers.set(request, { keyId: key.id, sessionId: row.id, person: personOf(row) })
  return { key, accessToken: undefined }
}

function headerOf(request: Request): string | undefined {
  return request.headers.get('authorization')?.trim() || headerFromKey(request)
}

/** Anthropic's clients send their key in this header. When both are sent, the Authorization header wins. */
function headerFromKey(request: Request): string | undefined {
  const key = request.headers.get('x-api-key')?.trim()
  return key ? `Bearer ${key}` : undefined
}

/**
 * The caller of an inference path, who may use an inference key or an access token.
 * @throws Fault `forbidden` for a management key, and as `authenticate`
 */
export function authenticateInference(request: Request, context: BearerContext): Principal | Promise<Principal> {
  const found = authenticate(request, context)
  return found instanceof Promise ? found.then(rejectManagementKey) : rejectManagementKey(found)
}

function rejectManagementKey(principal: Principal): Principal {
  if (principal.key.kind === 'inference') return principal
  throw new Fault('forbidden', 'Management keys cannot call inference; use an inference key or an access token', {
    reason: 'key_kind',
  })
}

/**
 * The caller of an administration path, who needs a management key. Without an act, its role does not matter.
 * @throws Fault `forbidden` for every other key, for access tokens, and for a role that may not do it, and as `authenticate`
 */
export async function authenticateManagement(request: Request, context: BearerContext, act?: Act): Promise<Key> {
  const { key, accessToken } = await authenticateReader(request, context)
  const isManagement = accessToken === undefined && key.kind !== 'inference'
  if (!isManagement) throw new Fault('forbidden', 'Only management keys can perform this operation')
  if (act !== undefined) checkRole(key.role, act)
  return key
}

function fromApiKey(text: string, { registry, now }: BearerContext): Principal | Promise<Principal> {
  const hash = hashApiKey(text)
  const principalOf = (key: Key | undefined): Principal => {
    if (key === undefined) throw invalidCredential('key_unknown')
    const at = now()
    const textHash = checkKeyText(key, hash, at)
    return { key: checkKeyState(key, at), accessToken: undefined, textHash }
  }
  const key = registry.keysByHash.get(hash)
  return key === undefined ? registry.deleted.keyWithHash(hash).then(principalOf) : principalOf(key)
}

function fromAccessToken(text: string, context: BearerContext): Principal | Promise<Principal> {
  const known = context.verifiedTokens.find(text, context.now())
  return known === undefined
    ? verify(text, context).then((verified) => actAs(verified, context))
    : actAs(known, context)
}

function actAs(accessToken: AccessToken, { registry, now }: BearerContext): Principal {
  return { key: checkKeyState(registry.keys.get(accessToken.keyId), now()), accessToken }
}

async function verify(text: string, context: BearerContext): Promise<AccessToken> {
  const verified = await verifyAccessToken(context, text, context.now())
  if (verified === 'token_expired') throw expired(text, context.now())
  if (typeof verified === 'string')
    throw isForeignJwt(text, context) ? notExchanged(context) : invalidCredential(verified)
  const accessToken = { ...verified.claims, allowed: compileAllowLists(verified.claims) }
  context.verifiedTokens.keep(text, { accessToken, kid: verified.kid, expiresAt: verified.expiresAt })
  return accessToken
}

/** Only for a token whose signature was verified: it shows its holder nothing that the holder cannot read in it. */
function expired(text: string, now: number): Fault {
  const exp = Number(parseJwtText(text)?.payload.exp) * 1_000
  const at = new Date(exp).toISOString().slice(0, 19)
  const ago = now - exp
  const [unit, length] = ago < 2 * minute ? ['s', 1_000] : ago < 2 * hour ? ['min', minute] : ['h', hour]
  const date = ago < day ? '' : `on ${at.slice(0, 10)} `
  const when = `${date}at ${at.slice(11)} UTC (${Math.floor(ago / Number(length))} ${unit} ago)`
  const message = `The access token expired ${when}; exchange again`
  return invalidCredential('token_expired', { message })
}

/** Whether a token is a JWT of another issuer: most likely a subject token that was not exchanged. */
function isForeignJwt(text: string, { baseUrl }: BearerContext): boolean {
  const jwt = parseJwtText(text)
  return jwt !== undefined && jwt.payload.iss !== baseUrl
}

function notExchanged({ baseUrl }: BearerContext): Fault {
  const message = `This JWT is not an access token: exchange it first at ${baseUrl}/oauth/token`
  return invalidCredential('token_not_exchanged', { message })
}

/** Whether the organization of the caller lets its callers know which upstream serves them. */
export function showsUpstreams(
  { key }: Pick<Principal, 'key'>,
  { registry }: Pick<BearerContext, 'registry'>,
): boolean {
  return registry.organizations.get(key.organizationId)?.upstreamHeaders === true
}
