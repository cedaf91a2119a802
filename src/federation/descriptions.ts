// What the endpoints of the exchange say of themselves, for the OpenAPI document (interface §4.1, §4.2 and §7.1, decisions §1 and §5).
import { type Description, errorResponses } from '../http/description.ts'
import { type } from '../shape.ts'
import { accessTokenType, jwtTokenType, tokenExchangeGrant } from './exchange-form.ts'

const form = type({
  grant_type: `'${tokenExchangeGrant}'`,
  subject_token_type: `'${jwtTokenType}'`,
  subject_token: 'string > 0',
  federation_policy_id: 'string > 0',
  'requested_token_type?': `'${accessTokenType}'`,
  'scope?': "'inference'",
  'audience?': 'string',
  'resource?': 'string',
})
const reply = type({
  access_token: 'string',
  issued_token_type: `'${accessTokenType}'`,
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

export const exchangeDescription: Description = {
  summary: 'Exchange a JWT of a trusted issuer for an access token (RFC 8693)',
  access: 'public',
  body: { mediaType: 'application/x-www-form-urlencoded', shape: form },
  responses: {
    200: { description: 'The access token', shape: reply },
    400: { description: 'The form is wrong, or the token was not accepted under the policy', shape: oauthError },
    405: { description: 'Another method than POST', shape: oauthError },
    413: { description: 'The body is too large', shape: oauthError },
    429: {
      description: 'Too many exchanges from one address; Retry-After tells when to come again',
      shape: oauthError,
    },
    500: { description: 'Something unforeseen; the log has the details', shape: oauthError },
    503: { description: "The issuer's keys cannot be had; Retry-After tells when to come again", shape: oauthError },
  },
}

export const jwksDescription: Description = {
  summary: 'The public keys that verify access tokens (RFC 7517)',
  access: 'public',
  responses: { 200: { description: 'The key set', shape: jwks }, ...errorResponses() },
}
