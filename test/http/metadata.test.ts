// The metadata documents, read by a certified client (oauth4webapi), which also computes their addresses.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import * as oauth from 'oauth4webapi'
import { jwtBearerGrant, tokenExchangeGrant } from '../../src/federation/grants.ts'
import { startTestServer, type TestServer } from '../support/latchkey.ts'

let plain: TestServer
let prefixed: TestServer
beforeAll(async () => {
  plain = await startTestServer()
  prefixed = await startTestServer({
    settings: { LATCHKEY_BASE_URL: 'https://llm.example.com/team/ai/v1', LATCHKEY_JWT_BEARER: 'false' },
  })
})
afterAll(() => Promise.all([plain.stop(), prefixed.stop()]))

const insecure = { [oauth.allowInsecureRequests]: true }

/** Sends requests for the public address to the server behind it, as a proxy does. */
const throughProxy = {
  [oauth.customFetch]: (url: string) =>
    fetch(url.replace('https://llm.example.com', `http://127.0.0.1:${prefixed.server.address.port}`)),
}

describe('a client that knows the base URL alone', () => {
  test('finds the authorization server of the resource, and there the token endpoint and the key set', async () => {
    const base = new URL(plain.server.baseUrl)
    const resource = await oauth.processResourceDiscoveryResponse(
      base,
      await oauth.resourceDiscoveryRequest(base, insecure),
    )
    expect(resource).toEqual({
      resource: plain.server.baseUrl,
      authorization_servers: [plain.server.baseUrl],
      scopes_supported: ['inference'],
      bearer_methods_supported: ['header'],
      latchkey_logins: [],
    })
    const issuer = new URL(resource.authorization_servers?.[0] ?? '')
    const request = oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oauth2' })
    const found = await oauth.processDiscoveryResponse(issuer, await request)
    expect(found).toMatchObject({
      issuer: plain.server.baseUrl,
      grant_types_supported: [tokenExchangeGrant, jwtBearerGrant],
      token_endpoint_auth_methods_supported: ['none'],
      response_types_supported: [],
    })
    expect((await fetch(found.jwks_uri ?? '')).status).toBe(200)
    const empty = await fetch(found.token_endpoint ?? '', { method: 'POST', body: new URLSearchParams() })
    expect(await empty.json()).toMatchObject({ error: 'invalid_request' })
  })

  test('finds them at the root of the host, also under a longer path, and without a grant that is off', async () => {
    const base = new URL('https://llm.example.com/team/ai/v1')
    const found = await oauth.processDiscoveryResponse(
      base,
      await oauth.discoveryRequest(base, { ...throughProxy, algorithm: 'oauth2' }),
    )
    expect(found).toMatchObject({
      token_endpoint: `${base}/oauth/token`,
      jwks_uri: `${base}/oauth/jwks`,
      grant_types_supported: [tokenExchangeGrant],
    })
    const resource = await oauth.resourceDiscoveryRequest(base, throughProxy)
    expect(await oauth.processResourceDiscoveryResponse(base, resource)).toMatchObject({ resource: base.href })
  })
})

test.each(['/v2', '/v1/', '/team/v1', '', '/%76%31/x'])('%p is the path of no base URL here', async (path) => {
  const response = await fetch(`${new URL(plain.server.baseUrl).origin}/.well-known/oauth-protected-resource${path}`)
  expect(response.status).toBe(404)
})

test('they are public, may be cached, and name nothing that the registry holds', async () => {
  await plain.admin('issuers.add', { name: 'hidden', issuer_url: 'https://hidden.example.com' })
  const { origin } = new URL(plain.server.baseUrl)
  for (const name of ['oauth-authorization-server', 'oauth-protected-resource']) {
    const response = await fetch(`${origin}/.well-known/${name}/v1`)
    expect(response.headers.get('cache-control')).toBe('public, max-age=300')
    expect(await response.text()).not.toContain('hidden')
    expect((await fetch(`${origin}/.well-known/${name}/v1`, { method: 'POST' })).status).toBe(405)
  }
})
