// A real identity provider for people: oidc-provider with a sign-in that asks nothing. A test says who signs in and what goes wrong.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { Provider } from 'oidc-provider'

export type Person = { email: string; groups: string[] }

export type PeopleProvider = {
  issuerUrl: string
  /** By subject. Groups are read again for every ID token. */
  people: Map<string, Person>
  /** Who sits at the browser; undefined cancels the sign-in. */
  who: string | undefined
  /** The grants that the token endpoint gave and refused, such as `refresh_token` and `refused refresh_token`. */
  grants: string[]
  /** Answers a request in place of the provider, if it returns true. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined
  /** Signs claims with the key of the provider. */
  sign: (claims: object, header?: object) => Promise<string>
  stop: () => Promise<void>
}

export type ProviderSettings = {
  clients: object[]
  idTokenSeconds?: number
  port?: number
}

export const commandClient = {
  client_id: 'latchkey-cli',
  application_type: 'native',
  token_endpoint_auth_method: 'none',
  grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  response_types: ['code'],
  redirect_uris: ['http://127.0.0.1/callback'],
}

/** Starts a provider with the issuer `http://127.0.0.1:PORT`. Refresh tokens rotate, and using one twice ends the login. */
export async function startPeopleProvider({
  clients,
  idTokenSeconds = 3_600,
  port = 0,
}: ProviderSettings): Promise<PeopleProvider> {
  let handle: (request: IncomingMessage, response: ServerResponse) => unknown = (_, response) => response.end()
  const server = createServer((request, response) => {
    if (state.intercept?.(request, response) !== true) handle(request, response)
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const issuerUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const kid = 'the key of this test'
  const state: PeopleProvider = {
    issuerUrl,
    people: new Map(),
    who: undefined,
    grants: [],
    intercept: undefined,
    sign: (claims, header = {}) =>
      new SignJWT({ ...claims }).setProtectedHeader({ alg: 'RS256', kid, ...header }).sign(privateKey),
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  const provider = new Provider(
    issuerUrl,
    configure(state, { ...(await exportJWK(privateKey)), kid }, clients, idTokenSeconds),
  )
  provider.on('grant.success', ({ oidc }) => state.grants.push(String(oidc.params?.grant_type)))
  provider.on('grant.error', ({ oidc }, error) =>
    state.grants.push(`refused ${oidc.params?.grant_type} ${(error as { error?: string } | undefined)?.error}`),
  )
  const serve = provider.callback()
  handle = (request, response) =>
    request.url?.startsWith('/interaction/') ? interact(provider, state, request, response) : serve(request, response)
  return state
}

/** Signs in the person at the browser, and consents to everything. */
async function interact(
  provider: Provider,
  { who, people }: PeopleProvider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { prompt, session, params } = await provider.interactionDetails(request, response)
  if (who === undefined || !people.has(who))
    return provider.interactionFinished(request, response, { error: 'access_denied', error_description: 'Canceled' })
  if (prompt.name === 'login') return provider.interactionFinished(request, response, { login: { accountId: who } })
  const grant = new provider.Grant({ accountId: session?.accountId ?? who, clientId: params.client_id ?? '' })
  grant.addOIDCScope(params.scope ?? 'openid')
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
}

function configure(state: PeopleProvider, key: object, clients: object[], idTokenSeconds: number): object {
  return {
    jwks: { keys: [{ ...key, alg: 'RS256', use: 'sig' }] },
    clients,
    cookies: { keys: ['of this test alone'] },
    ttl: { IdToken: idTokenSeconds, AccessToken: 3_600, RefreshToken: 86_400, DeviceCode: 600 },
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: async () => ({ sub: id, preferred_username: id, ...state.people.get(id) }),
    }),
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'], email: ['email'] },
    conformIdTokenClaims: false,
    scopes: ['openid', 'offline_access', 'profile', 'email'],
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: false },
      deviceFlow: { enabled: true },
      revocation: { enabled: true },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true },
    },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
  }
}
