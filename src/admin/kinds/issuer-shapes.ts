// The shapes of an issuer's URLs and certificates, and of what makes the service a client of it.
import { issuerCaCharactersMax, urlCharactersMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { textCheckedLater } from '../../values/shapes.ts'

const url = 'An `https://` address without user name, fragment, white space and control characters'
export const urlShape = textCheckedLater(urlCharactersMax, url)
export const issuerUrlShape = textCheckedLater(urlCharactersMax, `${url}, and without a query; \`iss\` must equal it`)
export const caShape = textCheckedLater(issuerCaCharactersMax, 'Certificates in PEM')
/** Identifiers of clients are printable (RFC 6749 appendix A.1); spaces of a list separate scopes (appendix A.4). */
export const clientIdShape = type(/^[\x20-\x7e]{1,512}$/)
export const scopesShape = type(/^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/)
  .and('string <= 1000')
  .configure({ says: 'Scopes, separated by spaces; `openid` must be among them' })
export const redirectUriShape = type(/^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?(\/[\w./-]*)?$/)
  .and('string <= 200')
  .configure({ says: '`http://127.0.0.1/…`, `http://localhost/…` or `http://[::1]/…`, with a port or without' })

/** No error quotes it. */
export const secretShape = type('unknown')
  .narrow(
    (value, context) =>
      (typeof value === 'string' && /^[\x20-\x7e]{1,1000}$/.test(value)) ||
      context.reject({ expected: 'a text of 1 to 1000 printable characters', actual: '' }),
  )
  .as<string>()
  .configure({ says: 'The secret of the client of the page' })
