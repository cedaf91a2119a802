// What a failed fetch from an issuer is called: our words for what Bun and Deno say, and the way out where there is one.
import { describe, expect, test } from 'bun:test'
import { describeFetchFailure } from '../../../src/federation/issuer/fetch-failure.ts'

const bun = (code: string, message: string) => Object.assign(new TypeError(message), { code })
const deno = (message: string) => new TypeError('error sending request', { cause: new Error(message) })

const verbose =
  'The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second'
const rows: [name: string, error: unknown, told: RegExp, code: string][] = [
  [
    'an unknown authority',
    bun('UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'unable to verify the first certificate'),
    /^no public authority .*--ca-file/,
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  ],
  ['a self-signed one', bun('DEPTH_ZERO_SELF_SIGNED_CERT', 'self signed certificate'), /--ca-file/, 'DEPTH_ZERO'],
  ['one in a chain', bun('SELF_SIGNED_CERT_IN_CHAIN', 'self signed certificate'), /--ca-file/, 'SELF_SIGNED'],
  ['an unknown issuer on Deno', deno('invalid peer certificate: UnknownIssuer'), /no public .*--ca-file/, 'error'],
  ['another host name', bun('ERR_TLS_CERT_ALTNAME_INVALID', 'altnames'), /another host name.*--ca-file/, 'ERR_TLS'],
  ['another host name on Deno', deno('invalid peer certificate: NotValidForName'), /another host name/, 'error'],
  ['one that is out of date', bun('CERT_HAS_EXPIRED', 'certificate has expired'), /has expired$/, 'CERT_HAS_EXPIRED'],
  ['a name that is none', bun('ENOTFOUND', 'getaddrinfo ENOTFOUND idp'), /its name cannot be resolved/, 'ENOTFOUND'],
  [
    'a closed port',
    bun('ECONNREFUSED', 'ECONNREFUSED: Unable to connect. Is the computer able to access the url?'),
    /^nothing listens there$/,
    'ECONNREFUSED',
  ],
  [
    'an old name of it',
    bun('ConnectionRefused', 'Unable to connect. Is the computer able'),
    /^nothing listens/,
    'Connection',
  ],
  ['a typo in words', bun('FailedToOpenSocket', 'Was there a typo in the url or port?'), /reached$/, 'FailedToOpen'],
  ['a connection that breaks', bun('ECONNRESET', verbose), /^the connection was closed early$/, 'ECONNRESET'],
  ['no TLS', bun('EPROTO', 'The TLS handshake failed. Does the server speak TLS?'), /does not speak TLS/, 'EPROTO'],
  ['anything else', bun('NEW', 'pass `verbose: true` in the second argument'), /^the connection failed$/, 'NEW'],
  ['something without a code', new Error('odd'), /^the connection failed$/, 'odd'],
  ['what is no error', 'odd', /^the connection failed$/, 'odd'],
]

describe('names the cause of', () => {
  for (const [name, error, cause, code] of rows) {
    test(name, () => {
      const described = describeFetchFailure(error, false)
      expect(described.cause).toMatch(cause)
      expect(described.cause).not.toMatch(/verbose|computer|typo|[A-Z]{3}_|[.?]$/)
      expect(described.code).toContain(code)
    })
  }

  test('a name that sounds like another failure', () => {
    const error = bun('ENOTFOUND', 'getaddrinfo ENOTFOUND self-signed-cert.econnrefused.example')
    expect(describeFetchFailure(error, false).cause).toContain('cannot be resolved')
  })

  test('an authority that was given and is not the one', () => {
    const unknown = bun('UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'unable to verify the first certificate')
    expect(describeFetchFailure(unknown, true).cause).toMatch(/the given authority has not signed.*--ca-file/)
  })
})
