// What clients discover by themselves: the metadata of the authorization server (RFC 8414) and of the protected resource
// (RFC 9728), which also lists the logins for people. Both are public.
import { Fault } from '../fault.ts'
import type { Endpoint, Handle } from '../http/endpoint.ts'
import { errorResponses } from '../http/operation-doc.ts'
import { json } from '../http/reply.ts'
import { accessTokenKeysCacheSeconds } from '../limits.ts'
import { type } from '../values/shape.ts'
import { jwtBearerGrant, tokenExchangeGrant } from './grants.ts'
import { loginOfferShape } from './login-offers.ts'

/** What the documents say. `baseUrl` is the issuer of access tokens, and the resource that they are for. */
export type MetadataContext = {
  baseUrl: string
  config: { jwtBearer: boolean }
  listLoginOffers: () => (typeof loginOfferShape.infer)[]
}

const authorizationServerShape = type({
  issuer: 'string',
  token_endpoint: 'string',
  jwks_uri: 'string',
  grant_types_supported: 'string[]',
  response_types_supported: 'string[]',
  scopes_supported: 'string[]',
  token_endpoint_auth_methods_supported: 'string[]',
}).configure({ title: 'AuthorizationServerMetadata' })

const protectedResourceShape = type({
  resource: 'string',
  authorization_servers: 'string[]',
  scopes_supported: 'string[]',
  bearer_methods_supported: 'string[]',
  latchkey_logins: loginOfferShape.array(),
}).configure({ title: 'ProtectedResourceMetadata' })

function describeAuthorizationServer({ baseUrl, config }: MetadataContext): typeof authorizationServerShape.infer {
  return {
    issuer: baseUrl,
    token_endpoint: `${baseUrl}/oauth/token`,
    jwks_uri: `${baseUrl}/oauth/jwks`,
    grant_types_supported: [tokenExchangeGrant, ...(config.jwtBearer ? [jwtBearerGrant] : [])],
    // The member is required, and there is no authorization endpoint.
    response_types_supported: [],
    scopes_supported: ['inference'],
    token_endpoint_auth_methods_supported: ['none'],
  }
}

/**
 * The service itself issues the tokens for the resource. Issuers that offer a login are not among its authorization servers: their tokens
 * must be exchanged first.
 */
function describeProtectedResource({ baseUrl, listLoginOffers }: MetadataContext): typeof protectedResourceShape.infer {
  return {
    resource: baseUrl,
    authorization_servers: [baseUrl],
    scopes_supported: ['inference'],
    bearer_methods_supported: ['header'],
    latchkey_logins: listLoginOffers(),
  }
}

const headers = { 'cache-control': `public, max-age=${accessTokenKeysCacheSeconds}` }

/** The well-known name stands before the path of the base URL (RFC 8414 §3.1, RFC 9728 §3.1). */
function publish(describe: (context: MetadataContext) => object): Handle<MetadataContext> {
  return async (_request, context, { params }) => {
    if (`/${params.base}` !== new URL(context.baseUrl).pathname) throw new Fault('not_found', 'Resource not found')
    return json(200, describe(context), headers)
  }
}

const common = { method: 'GET', isAtRoot: true } as const
const segments = { base: type('string').configure({ says: 'The path of the base URL, such as `v1`' }) }
const documented = { access: 'public', segments } as const

export const metadataEndpoints: Endpoint<MetadataContext>[] = [
  {
    ...common,
    path: '/.well-known/oauth-authorization-server/{base+}',
    handle: publish(describeAuthorizationServer),
    openapi: {
      ...documented,
      name: 'authorizationServerMetadata',
      summary: 'Where tokens are exchanged, and which grants there are (RFC 8414)',
      responses: { 200: { description: 'The metadata', shape: authorizationServerShape }, ...errorResponses(404) },
    },
  },
  {
    ...common,
    path: '/.well-known/oauth-protected-resource/{base+}',
    handle: publish(describeProtectedResource),
    openapi: {
      ...documented,
      name: 'protectedResourceMetadata',
      summary:
        'Which authorization server issues tokens for the service, and as which clients people sign in (RFC 9728)',
      responses: { 200: { description: 'The metadata', shape: protectedResourceShape }, ...errorResponses(404) },
    },
  },
]
