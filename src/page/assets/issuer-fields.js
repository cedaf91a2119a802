// The fields of an issuer on the page: what the form holds of each, and the labels of those that need nothing particular. What the API takes
// is in admin/kinds/issuer.ts.
/** @import { FormField, ValuesOf } from './fields.js' */

/** `fact`: the page of an issuer shows these seconds. @typedef {FormField & { fact?: string, none?: string }} IssuerField */
export const issuerFields = /** @type {const} */ ({
  name: { form: 'name' },
  issuer_url: { form: 'name' },
  source: { form: 'name', of: 'key_source', common: 'discovery' },
  jwks_url: { form: 'text' },
  jwks: { form: 'json' },
  keys_expire_at: {
    form: 'time',
    label: 'The keys expire at',
    help: 'Tokens are refused from then on. Empty: never',
  },
  shared: { form: 'answer' },
  ca_pem: { form: 'text' },
  clock_skew_seconds: {
    form: 'number',
    isKept: true,
    place: 'more',
    label: 'Clock skew in seconds',
    help: 'How far its clock may run ahead',
    fact: 'Clock skew',
  },
  max_token_age_seconds: {
    form: 'number',
    place: 'more',
    label: 'Longest token in seconds',
    help: 'From iat to exp',
    fact: 'Longest token',
    none: 'no limit',
  },
  keys_stale_seconds: {
    form: 'number',
    isKept: true,
    place: 'more',
    label: 'Keep keys for seconds',
    help: 'While the issuer is down',
    fact: 'Usable while it is down',
  },
  login_client_id: {
    form: 'word',
    place: 'login',
    label: 'Client ID for latchkey login',
    help: 'A public client. The policy has the same id as its audience',
    fact: 'Login client',
    none: 'no login',
  },
  login_scopes: {
    form: 'word',
    place: 'login',
    label: 'Scopes',
    help: 'Usually openid profile email, and offline_access',
  },
  login_redirect_uri: {
    form: 'word',
    place: 'login',
    label: 'Redirect URI',
    help: 'Usually the path /callback of 127.0.0.1, on any port',
  },
  page_client_id: {
    form: 'word',
    place: 'page',
    label: 'Client ID for this page',
    help: 'People sign in to this page as this client. A policy for a management key has the same id as its audience',
    fact: 'Client of this page',
    none: 'nobody signs in with it',
  },
  page_authentication: {
    form: 'word',
    place: 'page',
    label: 'How this page proves to be the client',
    help: 'As the provider registered it',
    common: 'none',
    options: [
      ['none', 'not at all: a public client'],
      ['secret', 'with a secret'],
      ['private_key_jwt', 'with a key of this server (private_key_jwt)'],
    ],
  },
  page_secret: {
    form: 'secret',
    of: 'has_page_secret',
    label: 'Secret of the client',
    help: 'It is encrypted and never shown again. Empty: the one that is stored stays',
  },
  page_max_age_seconds: {
    form: 'number',
    place: 'page',
    label: 'Sign in again after seconds',
    help: 'Since the provider last asked people who they are. Usually empty',
    fact: 'Sign in again after',
    none: 'as the provider decides',
  },
})
/** @typedef {ValuesOf<typeof issuerFields>} IssuerValues */

/** In the order of the form. */
export const issuerFieldList =
  /** @type {readonly (readonly [name: keyof typeof issuerFields, field: IssuerField])[]} */ (
    Object.entries(issuerFields)
  )
