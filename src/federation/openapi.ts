// The OpenAPI descriptions of the exchange endpoints (reference: Token exchange; Token endpoint errors; Key set of
// access tokens).
import { errorResponses, type OperationDoc } from '../http/operation-doc.ts'
import { exchangeBodyBytesLimit, subjectTokenBytesMax } from '../limits.ts'
import { jwtForm } from '../tokens/jwt-text.ts'
import { foreignIdCharactersMax, foreignIdText } from '../values/id-text.ts'
import { type } from '../values/shape.ts'
import { uuidShape } from '../values/shapes.ts'
import { accessTokenType, jwtBearerGrant, jwtTokenType, tokenExchangeGrant } from './grants.ts'

const ignored = type('string').or('string[]').configure({ says: 'Accepted and ignored' })
const notOffered = type("''").configure({ says: 'Delegation is not supported' })

const jwt = type(jwtForm).configure({
  minLength: 1,
  maxLength: subjectTokenBytesMax,
  says: 'A JWT: three base64url parts around JSON objects',
})
const policyId = uuidShape.configure({ says: 'The id of the policy, not its name' })
const optional = {
  'requested_token_type?': `'${accessTokenType}' | ''`,
  'scope?': "'inference' | ''",
  'audience?': ignored,
  'resource?': ignored,
  'actor_token?': notOffered,
  'actor_token_type?': notOffered,
} as const

/** A field without a value counts as omitted. */
const tokenExchange = type({
  grant_type: `'${tokenExchangeGrant}'`,
  subject_token_type: `'${jwtTokenType}'`,
  subject_token: jwt,
  federation_policy_id: policyId,
  ...optional,
})
const foreignId = type(foreignIdText).configure({
  maxLength: foreignIdCharactersMax,
  says: 'What clients of another service send along; accepted and ignored',
})
/** One of the two ids of the policy is required; both may be sent if they are the same. */
const jwtBearer = type({
  grant_type: `'${jwtBearerGrant}'`,
  assertion: jwt,
  'federation_rule_id?': policyId,
  'federation_policy_id?': policyId,
  'organization_id?': foreignId,
  'service_account_id?': foreignId,
  'workspace_id?': foreignId,
  ...optional,
})
const rules = `Token exchange (RFC 8693) takes a form; the jwt-bearer grant (RFC 7523) a form or JSON, with federation_rule_id or federation_policy_id, and its response has no issued_token_type. The body is smaller than ${exchangeBodyBytesLimit} bytes, and only audience and resource may be repeated. The subject token must be signed by the issuer of the policy and satisfy its rules; whatever else is wrong with it or with the policy gets the same answer, invalid_grant.`
const reply = type({
  access_token: 'string',
  'issued_token_type?': `'${accessTokenType}'`,
  token_type: "'Bearer'",
  expires_in: '1 <= number.integer <= 900',
  scope: "'inference'",
})
const oauthError = type({
  error:
    "'invalid_request' | 'unsupported_grant_type' | 'invalid_scope' | 'invalid_grant' | 'temporarily_unavailable' | 'server_error'",
  error_description: 'string',
  request_id: 'string',
})
const jwks = type({
  keys: type({
    alg: "'ES256'",
    crv: "'P-256'",
    kid: 'string',
    kty: "'EC'",
    use: "'sig'",
    x: 'string',
    y: 'string',
  }).array(),
})

export const exchangeDescription: OperationDoc = {
  summary: 'Exchange a JWT of a trusted issuer for an access token (RFC 8693, RFC 7523)',
  rules,
  access: 'public',
  body: [
    { mediaType: 'application/x-www-form-urlencoded', shape: tokenExchange.or(jwtBearer) },
    { mediaType: 'application/json', shape: jwtBearer },
  ],
  responses: {
    200: { description: 'The access token', shape: reply },
    400: { description: 'The request is wrong, or the token was not accepted under the policy', shape: oauthError },
    405: { description: 'The method is not POST', shape: oauthError },
    413: { description: 'The body is too large', shape: oauthError },
    429: {
      description: 'Too many exchanges from one address; try again after the time in Retry-After',
      shape: oauthError,
    },
    500: { description: 'Something unforeseen; the log has the details', shape: oauthError },
    503: {
      description: "The issuer's keys could not be fetched; try again after the time in Retry-After",
      shape: oauthError,
    },
  },
}

export const jwksDescription: OperationDoc = {
  summary: 'The public keys that verify access tokens (RFC 7517)',
  access: 'public',
  responses: { 200: { description: 'The key set', shape: jwks }, ...errorResponses() },
}
