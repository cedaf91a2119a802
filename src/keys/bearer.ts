// Turns the Authorization header into who is calling (reference: Credentials): an API key, or an access token acting as one.
import type { ApiKey, Organization } from '../../db/schema.ts'
import { Fault } from '../fault.ts'
import { type AccessTokenClaims, verifyAccessToken } from '../tokens/access-token.ts'
import { parseJwtText } from '../tokens/jwt-text.ts'
import type { SigningKeys } from '../tokens/signing-keys.ts'
import { checkKeyState, hashApiKey, invalidCredential, isApiKeyText } from './api-key.ts'
import type { TokenCache } from './token-cache.ts'

/** What of the registry tells who a credential is. */
export type KeyRegistry = {
  readonly organizations: ReadonlyMap<string, Readonly<Organization>>
  readonly keys: ReadonlyMap<string, Readonly<ApiKey>>
  readonly keysByHash: ReadonlyMap<string, Readonly<ApiKey>>
}

/** What it takes to know who calls. */
export type BearerContext = {
  registry: KeyRegistry
  verifiedTokens: TokenCache
  signingKeys: SigningKeys
  baseUrl: string
  now: () => number
}

export type Principal = {
  key: Readonly<ApiKey>
  /** Set when an access token was used. */
  accessToken: AccessTokenClaims | undefined
}

/**
 * The caller, with the state of the key as of the last acknowledged change.
 * @throws Fault `unauthorized` for a missing, malformed, unknown, expired or disabled credential
 */
export async function authenticate(request: Request, context: BearerContext): Promise<Principal> {
  const header = request.headers.get('authorization')?.trim() || headerFromKey(request)
  if (header === undefined) {
    throw new Fault('unauthorized', 'Missing Authentication header', { headers: { 'www-authenticate': 'Bearer' } })
  }
  const credential = /^bearer +([A-Za-z0-9._~+/=-]+)$/i.exec(header)?.[1]
  if (credential === undefined)
    throw invalidCredential('header_malformed', 'The Authorization header must be "Bearer", a space and one credential')
  return isApiKeyText(credential) ? fromApiKey(credential, context) : fromAccessToken(credential, context)
}

/** Anthropic's clients send their key so; who sends both means the Authorization header. */
function headerFromKey(request: Request): string | undefined {
  const key = request.headers.get('x-api-key')?.trim()
  return key ? `Bearer ${key}` : undefined
}

/**
 * The caller of an inference path, who may use an inference key or an access token.
 * @throws Fault `forbidden` for a management key, and as `authenticate`
 */
export async function authenticateInference(request: Request, context: BearerContext): Promise<Principal> {
  const principal = await authenticate(request, context)
  if (principal.key.kind !== 'inference')
    throw new Fault('forbidden', 'Management keys cannot call inference; use an inference key or an access token')
  return principal
}

/**
 * The caller of an administration path, who needs a management key; a read-only one only reads.
 * @throws Fault `forbidden` for every other key and for access tokens, and as `authenticate`
 */
export async function authenticateManagement(
  request: Request,
  context: BearerContext,
  { writes }: { writes: boolean },
): Promise<Readonly<ApiKey>> {
  const { key, accessToken } = await authenticate(request, context)
  const isManagement = accessToken === undefined && key.kind !== 'inference'
  if (!isManagement) throw new Fault('forbidden', 'Only management keys can perform this operation')
  if (writes && key.kind !== 'management') throw new Fault('forbidden', 'This management key is read-only')
  return key
}

function fromApiKey(text: string, { registry, now }: BearerContext): Principal {
  return { key: checkKeyState(registry.keysByHash.get(hashApiKey(text)), now()), accessToken: undefined }
}

async function fromAccessToken(text: string, context: BearerContext): Promise<Principal> {
  const accessToken = context.verifiedTokens.find(text, context.now()) ?? (await verify(text, context))
  return { key: checkKeyState(context.registry.keys.get(accessToken.keyId), context.now()), accessToken }
}

async function verify(text: string, context: BearerContext): Promise<AccessTokenClaims> {
  const verified = await verifyAccessToken(context, text, context.now())
  if (typeof verified === 'string')
    throw isForeignJwt(text, context) ? notExchanged(context) : invalidCredential(verified)
  context.verifiedTokens.keep(text, verified)
  return verified.claims
}

/** A JWT of another issuer: most likely the subject token of a workload that has yet to exchange it. */
function isForeignJwt(text: string, { baseUrl }: BearerContext): boolean {
  const jwt = parseJwtText(text)
  return jwt !== undefined && jwt.payload.iss !== baseUrl
}

function notExchanged({ baseUrl }: BearerContext): Fault {
  const message = `This JWT is not an access token: exchange it first at ${baseUrl}/oauth/token`
  return invalidCredential('token_not_exchanged', message)
}
