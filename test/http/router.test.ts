// The route of a method and path: exact paths under the base path; a path with other methods differs from an unknown path.
import { describe, expect, test } from 'bun:test'
import { createRouter } from '../../src/http/router.ts'

const routes = [
  { method: 'POST', path: '/oauth/token', handle: null },
  { method: 'GET', path: '/models', handle: null },
  { method: 'GET', path: '/keys', handle: null },
  { method: 'POST', path: '/keys', handle: null },
  { method: 'GET', path: '/keys/{hash}', handle: null },
  { method: 'POST', path: '/keys/{hash}/pause', handle: null },
]
const [exchange, models, listKeys, createKey, showKey, pauseKey] = routes
const route = createRouter('/base/v1', routes)

describe('a request', () => {
  const rows: [method: string, path: string, expected: object | undefined][] = [
    ['POST', '/base/v1/oauth/token', { found: exchange, params: {} }],
    ['GET', '/base/v1/models', { found: models, params: {} }],
    ['HEAD', '/base/v1/models', { found: models, params: {} }],
    ['GET', '/base/v1/keys', { found: listKeys, params: {} }],
    ['POST', '/base/v1/keys', { found: createKey, params: {} }],
    ['GET', '/base/v1/oauth/token', { sibling: exchange, allowed: ['POST'] }],
    ['HEAD', '/base/v1/oauth/token', { sibling: exchange, allowed: ['POST'] }],
    ['post', '/base/v1/oauth/token', { sibling: exchange, allowed: ['POST'] }],
    ['DELETE', '/base/v1/keys', { sibling: listKeys, allowed: ['GET', 'HEAD', 'POST'] }],
    ['GET', '/base/v1/keys/a', { found: showKey, params: { hash: 'a' } }],
    ['GET', '/base/v1/keys/%61%20b', { found: showKey, params: { hash: 'a b' } }],
    ['GET', '/base/v1/keys/..%2Fb', { found: showKey, params: { hash: '../b' } }],
    ['POST', '/base/v1/keys/a/pause', { found: pauseKey, params: { hash: 'a' } }],
    ['DELETE', '/base/v1/keys/a', { sibling: showKey, allowed: ['GET', 'HEAD'] }],
    ['GET', '/base/v1/keys/', undefined],
    ['GET', '/base/v1/keys/a/b', undefined],
    ['GET', '/base/v1/keys/%zz', undefined],
    ['GET', '/base/v1/keys/{hash}', { found: showKey, params: { hash: '{hash}' } }],
    ['POST', '/base/v1/oauth/token/', undefined],
    ['POST', '/base/v1/oauth//token', undefined],
    ['POST', '/base/v1/OAUTH/token', undefined],
    ['POST', '/v1/oauth/token', undefined],
    ['POST', '/oauth/token', undefined],
    ['GET', '/base/v1', undefined],
    ['GET', '/', undefined],
    ['GET', '', undefined],
    ['GET', '/base/v1/__proto__', undefined],
  ]
  for (const [method, path, expected] of rows) {
    test(`${method} ${path || '(none)'} finds ${expected === undefined ? 'nothing' : Object.keys(expected).join(' and ')}`, () => {
      expect(route(method, path)).toEqual(expected as never)
    })
  }
})
