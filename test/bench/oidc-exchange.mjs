// oidc-provider with a token-exchange grant that makes the same checks: signature, iss, exp, sub, aud, one claim; and issues an ES256 JWT.
// Runs on Node and on Bun. Prints its port. `node oidc-exchange.mjs JWKS_URL ISSUER AUDIENCE SUBJECT`
import { createServer } from 'node:http'
import { createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose'
import { errors, Provider } from 'oidc-provider'

const [, , jwksUrl, issuer, audience, subject] = process.argv
const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const keySet = createLocalJWKSet(await (await fetch(jwksUrl)).json())
const { privateKey } = await generateKeyPair('ES256', { extractable: true })
const resource = 'urn:latchkey:bench'

const server = createServer((request, response) => provider.callback()(request, response))
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const provider = new Provider(`http://127.0.0.1:${server.address().port}`, {
  jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig' }] },
  cookies: { keys: ['unused'] },
  clients: [
    {
      client_id: 'workload',
      id_token_signed_response_alg: 'ES256',
      token_endpoint_auth_method: 'none',
      grant_types: [grant],
      redirect_uris: [],
      response_types: [],
    },
  ],
  features: {
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({
        scope: 'inference',
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: 900,
        jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
})
provider.registerGrantType(
  grant,
  async (context) => {
    const { payload } = await jwtVerify(context.oidc.params.subject_token, keySet, {
      issuer,
      audience,
      algorithms: ['RS256', 'ES256'],
      requiredClaims: ['exp'],
    })
    if (payload.sub !== subject || payload.environment !== 'production') throw new errors.InvalidGrant('refused')
    const { AccessToken, ResourceServer } = context.oidc.provider
    const token = new AccessToken({
      accountId: payload.sub,
      client: context.oidc.client,
      gty: 'token_exchange',
      scope: 'inference',
    })
    token.resourceServer = new ResourceServer(resource, {
      scope: 'inference',
      accessTokenFormat: 'jwt',
      accessTokenTTL: 900,
      jwt: { sign: { alg: 'ES256' } },
    })
    const access_token = await token.save()
    context.body = { access_token, token_type: 'Bearer', expires_in: token.expiration, scope: 'inference' }
  },
  ['subject_token', 'subject_token_type', 'federation_policy_id', 'requested_token_type', 'scope'],
)
provider.on('server_error', (_, error) => console.error(error))
process.on('uncaughtException', (error) => console.error(error))
console.log(server.address().port)
