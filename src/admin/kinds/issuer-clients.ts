// The fields of an issuer that make the service its client: for `latchkey login`, and for sign-in to the admin page.
import type { Issuer as IssuerRow } from '../../../db/schema/schema.ts'
import { pageAuthentications } from '../../../db/schema/value-names.ts'
import { pageMaxAgeSecondsMax, pageMaxAgeSecondsMin } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import type { Fields } from './fields.ts'
import { clientIdShape, redirectUriShape, scopesShape, secretShape } from './issuer-shapes.ts'

const text = 'string | null'
const login = 'it does not change which tokens pass'

export const issuerClientFields = {
  login_client_id: {
    shape: clientIdShape.configure({ says: 'The client as which people sign in with `latchkey login`' }).or('null'),
    column: 'loginClientId',
    shown: text,
    line: 'login client?',
    why: login,
    flag: {
      option: '--login-client-id <id>',
      says: 'public client of the issuer as which people sign in with latchkey login',
      no: 'offer no login',
    },
  },
  login_scopes: {
    shape: scopesShape.or('null'),
    column: 'loginScopes',
    shown: text,
    line: 'login scopes?',
    why: login,
    flag: {
      option: '--login-scopes <scopes>',
      says: 'scopes of a login (default: openid profile email, and offline_access where the issuer lists it)',
      no: 'request the usual scopes',
    },
  },
  login_redirect_uri: {
    shape: redirectUriShape.or('null'),
    column: 'loginRedirectUri',
    shown: text,
    line: 'login returns to?',
    why: login,
    flag: {
      option: '--login-redirect-uri <uri>',
      says: 'where the browser returns to; without a port, any free one is taken (default: http://127.0.0.1/callback)',
      no: 'return to http://127.0.0.1/callback',
    },
  },
  page_client_id: {
    shape: clientIdShape.configure({ says: 'The client as which the admin page signs people in' }).or('null'),
    column: 'pageClientId',
    shown: text,
    line: 'page client?',
    why: login,
    flag: {
      option: '--page-client-id <id>',
      says: 'client of the issuer as which the admin page signs people in',
      no: 'offer no sign-in to the admin page',
    },
  },
  page_authentication: {
    shape: type.enumerated(...pageAuthentications),
    default: 'none',
    column: 'pageAuthentication',
    shown: type.enumerated(...pageAuthentications),
    why: login,
    flag: {
      option: '--page-authentication <how>',
      says: 'how the page proves to be that client: none, secret or private_key_jwt (with a key of /oauth/jwks) (default: none)',
      choices: pageAuthentications,
    },
  },
  page_secret: {
    shape: secretShape.or('null'),
    isResolved: true,
    isSecret: true,
    isSourced: true,
    why: login,
    flag: {
      option: '--page-secret-file <file>',
      says: 'file with the secret of that client',
      form: 'text-file',
      no: 'remove the secret',
    },
  },
  has_page_secret: { shown: 'boolean' },
  page_max_age_seconds: {
    shape: type(`${pageMaxAgeSecondsMin} <= number.integer <= ${pageMaxAgeSecondsMax} | null`),
    column: 'pageMaxAgeSeconds',
    shown: 'number.integer | null',
    line: 'page sign-in at most?',
    none: 'any',
    why: login,
    flag: {
      option: '--page-max-age <duration>',
      says: 'how long ago the issuer may have asked people who they are; sessions of the page end then (default: any)',
      form: 'duration',
      no: 'leave it to the issuer',
    },
  },
} as const satisfies Fields<IssuerRow>
