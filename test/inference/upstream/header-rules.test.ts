// Names of headers: which an admin may add to those that pass, and which never pass, whatever an admin names.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  compileForwardedHeaders,
  compileReturnedHeaders,
  headerProblem,
} from '../../../src/inference/upstream/headers.ts'

const allowed = [
  'http-referer',
  'x-title',
  'x-openrouter-title',
  'openai-organization',
  'openai-project',
  'x-litellm-tags',
  'x-inference-time',
  'x-generated-tokens',
  'llm_provider-openai-processing-ms',
  'cache-control',
  'accept-language',
  'X-Tenant',
  // These pass in any case.
  'Idempotency-Key',
  'traceparent',
  'retry-after',
]
const refused: [reason: string, names: string[]][] = [
  [
    'it may carry a credential',
    [
      'authorization',
      'Proxy-Authorization',
      'x-authorization',
      'x-api-key',
      'api-key',
      'apikey',
      'x_api_key',
      'x-goog-api-key',
      'x-portkey-api-key',
      'x-portkey-virtual-key',
      'ocp-apim-subscription-key',
      'cookie',
      'set-cookie',
      'set-cookie2',
      'www-authenticate',
      'proxy-authenticate',
      'authentication-info',
      'x-auth-token',
      'x-access-token',
      'x-amz-security-token',
      'private-token',
      'x-client-secret',
      'x-auth-request-user',
      'x-goog-iap-jwt-assertion',
      'x-amzn-oidc-data',
      'ssl-client-cert',
      'dpop',
    ],
  ],
  [
    'it belongs to one connection',
    [
      'connection',
      'keep-alive',
      'proxy-connection',
      'te',
      'trailer',
      'transfer-encoding',
      'upgrade',
      'http2-settings',
      'expect',
      'host',
      'content-length',
      'content-encoding',
      'accept-encoding',
      'range',
      'if-none-match',
      'if-range',
    ],
  ],
  [
    'it describes the path of a request',
    [
      'forwarded',
      'x-forwarded-for',
      'X-Forwarded-Host',
      'x_forwarded_for',
      'x-forwarded',
      'x-real-ip',
      'x-client-ip',
      'true-client-ip',
      'cf-connecting-ip',
      'x-cluster-client-ip',
      'x-original-url',
      'x-rewrite-url',
      'x-remote-addr',
      'x-http-method-override',
      'x-envoy-original-path',
      'via',
    ],
  ],
  [
    'a proxy would act on it',
    ['x-accel-redirect', 'x-accel-buffering', 'x-sendfile', 'surrogate-control', 'x-reproxy-url'],
  ],
  [
    'browsers would apply it to this service',
    [
      'location',
      'refresh',
      'link',
      'alt-svc',
      'clear-site-data',
      'strict-transport-security',
      'access-control-allow-origin',
      'content-security-policy',
      'report-to',
      'service-worker-allowed',
    ],
  ],
  ['Latchkey sets it', ['x-request-id', 'X-Request-ID']],
]

for (const doing of ['forwarded', 'returned'] as const)
  describe(`a header that is ${doing}`, () => {
    test('may be any that describes the request or the answer', () => {
      for (const name of allowed)
        expect({ name, problem: headerProblem(name, doing) }).toEqual({ name, problem: undefined })
    })

    for (const [reason, names] of refused)
      test(`is never one of the refused names: ${reason}`, () => {
        for (const name of names) {
          const problem = headerProblem(name, doing)
          expect(problem).toStartWith(`"${name}" can never be ${doing}: ${reason}`)
          expect(problem).toContain('; leave it out')
        }
      })
  })

describe('a refused name that is already in the database', () => {
  const never = refused.flatMap(([, names]) => names)

  test('does not pass when it can never pass', () => {
    const forwarded = compileForwardedHeaders([...never, 'x-title'])
    const isReturned = compileReturnedHeaders([...never, 'x-title'])
    expect(forwarded).toContain('x-title')
    expect(isReturned('x-title')).toBe(true)
    for (const name of never.map((each) => each.toLowerCase())) {
      expect({ name, passes: forwarded.includes(name) }).toEqual({ name, passes: false })
      expect({ name, passes: isReturned(name) }).toEqual({ name, passes: false })
    }
  })

  test('does not pass unless it is named or needed', () => {
    const needed = new Set(compileForwardedHeaders([]))
    const isReturned = compileReturnedHeaders([])
    const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/)
    fc.assert(
      fc.property(name, (each) => {
        fc.pre(!needed.has(each) && !isReturned(each))
        expect(compileForwardedHeaders([]).includes(each)).toBe(false)
        expect(compileForwardedHeaders([each]).includes(each)).toBe(headerProblem(each, 'forwarded') === undefined)
        expect(compileReturnedHeaders([each])(each)).toBe(headerProblem(each, 'returned') === undefined)
      }),
    )
  })
})
