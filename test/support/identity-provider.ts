// A real identity provider for tests: oidc-provider on a free loopback port, with an OAuth client that gets a
// workload's JWT.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import * as oauth from 'oauth4webapi'
import { Provider } from 'oidc-provider'

/** The clients of the identity provider. Each gets tokens whose `sub` is its name. */
export const workloads = {
  'workload-rs256': { algorithm: 'RS256', lifetimeSeconds: 3_600 },
  'workload-es256': { algorithm: 'ES256', lifetimeSeconds: 3_600 },
  'workload-brief': { algorithm: 'RS256', lifetimeSeconds: 120 },
  'workload-stranger': { algorithm: 'ES256', lifetimeSeconds: 3_600 },
} as const
export type Workload = keyof typeof workloads

export type IdentityProvider = {
  issuerUrl: string
  /** Switches to other keys: announced keys or new ones. With `keepOld`, the old keys stay published. */
  rotateKeys: (options?: { keepOld?: boolean }) => Promise<void>
  /** Publishes the keys that sign after the next rotation. */
  announceKeys: () => Promise<void>
  /** Stops publishing the keys that `keepOld` kept. */
  withdrawKeys: () => void
  /** While the provider is out, every connection to it breaks. */
  setOut: (isOut: boolean) => void
  /** Returns a JWT for `audience`, obtained with client credentials and a resource indicator. */
  getToken: (workload: Workload, audience: string) => Promise<string>
  stop: () => Promise<void>
}

/** What the provider passes to its configuration for a client. */
type Client = { clientId: Workload }

const lifetimeOf = (workload: Workload) => workloads[workload].lifetimeSeconds
const secretOf = (workload: Workload) => `secret of ${workload}`

/**
 * Starts a provider with the issuer `http://127.0.0.1:PORT`, discovery, JWKS and a token endpoint. It signs RS256 and
 * ES256.
 */
export async function startIdentityProvider(): Promise<IdentityProvider> {
  let handle: (request: IncomingMessage, response: ServerResponse) => unknown = (_, response) => response.end()
  let isOut = false
  const server = createServer((request, response) => (isOut ? request.socket.destroy() : handle(request, response)))
  // A client's request must not meet the close of an idle connection, which a busy machine makes likely.
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuerUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  let announced: JWK[] = []
  let signing: JWK[] = []
  let kept: JWK[] = []
  function publish(): void {
    // The first key of the algorithm signs; the others are only published.
    handle = new Provider(issuerUrl, configurationWith([...signing, ...kept, ...announced])).callback()
  }
  async function rotateKeys({ keepOld = false } = {}): Promise<void> {
    const next = announced.length > 0 ? announced : await createKeys()
    kept = keepOld ? [...signing, ...kept] : []
    signing = next
    announced = []
    publish()
  }
  await rotateKeys()

  return {
    issuerUrl,
    rotateKeys,
    announceKeys: async () => {
      announced = await createKeys()
      publish()
    },
    withdrawKeys: () => {
      kept = []
      publish()
    },
    setOut: (out) => {
      isOut = out
    },
    getToken: (workload, audience) => requestToken(issuerUrl, workload, audience),
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function createKeys(): Promise<JWK[]> {
  return Promise.all(
    ['RS256', 'ES256'].map(async (alg) => {
      const { privateKey } = await generateKeyPair(alg, { extractable: true })
      return { ...(await exportJWK(privateKey)), alg, use: 'sig' }
    }),
  )
}

function configurationWith(keys: JWK[]): object {
  return {
    jwks: { keys },
    adapter: rememberNothing,
    ttl: { ClientCredentials: (_context: unknown, _token: unknown, { clientId }: Client) => lifetimeOf(clientId) },
    cookies: { keys: ['unused: no workload has a browser'] },
    clients: (Object.keys(workloads) as Workload[]).map((name) => ({
      client_id: name,
      client_secret: secretOf(name),
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    })),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: { enabled: true, getResourceServerInfo: describeResource },
    },
  }
}

/** Accepts any resource. The token is a JWT (RFC 9068) with the signature and times that its workload requests. */
function describeResource(_context: unknown, resource: string, { clientId }: Client): object {
  const { algorithm } = workloads[clientId]
  return { audience: resource, scope: 'read', accessTokenFormat: 'jwt', jwt: { sign: { alg: algorithm } } }
}

/** Stores nothing: tokens are self-contained, and clients are configured. */
function rememberNothing(): object {
  const nothing = async () => undefined
  return {
    upsert: nothing,
    find: nothing,
    findByUid: nothing,
    findByUserCode: nothing,
    consume: nothing,
    destroy: nothing,
    revokeByGrantId: nothing,
  }
}

/** Acts as a workload: discovery (RFC 8414), then client credentials (RFC 6749 §4.4) for one resource (RFC 8707). */
async function requestToken(issuerUrl: string, workload: Workload, audience: string): Promise<string> {
  const insecure = { [oauth.allowInsecureRequests]: true }
  const issuer = new URL(issuerUrl)
  const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
  const client: oauth.Client = { client_id: workload }
  const credential = oauth.ClientSecretBasic(secretOf(workload))
  const fields = { resource: audience, scope: 'read' }
  const response = await oauth.clientCredentialsGrantRequest(server, client, credential, fields, insecure)
  const { access_token } = await oauth.processClientCredentialsResponse(server, client, response)
  return access_token
}
