// The OpenAPI document: an independent validator accepts it, every route is in it, and the responses of the service match it.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { inferencePaths } from '../../src/values/inference-paths.ts'
import { type Federation, startFederation } from '../support/latchkey.ts'
import { createAnswerCheck, type OpenApiDocument, readDocument } from '../support/openapi.ts'

let federation: Federation
let document: OpenApiDocument
beforeAll(async () => {
  federation = await startFederation()
  document = await readDocument(federation.server.baseUrl)
})
afterAll(() => federation.stop())

test('an independent validator accepts it as OpenAPI 3.1', async () => {
  const validator = new Validator()
  expect(await validator.validate(structuredClone(document) as never)).toEqual({ valid: true })
  expect(validator.version).toBe('3.1')
})

test('a generator of clients finds names, refers to the same shapes, and meets no pattern that only JavaScript reads', () => {
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
  const names = operations.map(({ operationId }) => operationId)
  expect(new Set(names).size).toBe(names.length)
  for (const name of names) expect(name).toMatch(/^[a-z][A-Za-z]+$/)
  expect(names).toContainValues(['policiesCreate', 'issuersVerify', 'issuersVerifySaved', 'auditShow'])
  const schemas = [
    'Policy',
    'PolicyDraft',
    'Issuer',
    'IssuerVerification',
    'Exchange',
    'Change',
    'Explanation',
    'Error',
  ]
  expect(Object.keys(document.components.schemas)).toContainValues(schemas)
  const text = JSON.stringify(document)
  for (const [, named] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
    expect(document.components.schemas).toHaveProperty(String(named))
  expect(text).not.toMatch(/"pattern":"[^"]*\(\?/)
  expect(document.components.schemas.Policy).toMatchObject({
    properties: { created_at: { type: 'string', format: 'date-time' } },
  })
})

test('every name that an object requires is one that it has', () => {
  const wrong: string[] = []
  let seen = 0
  // A part of an object's rule, as `anyOf` and `not` have some, is about the properties of the whole.
  const look = (value: unknown, at: string, whole: object = {}): void => {
    if (typeof value !== 'object' || value === null) return
    const { required, properties = whole } = value as { required?: unknown; properties?: object }
    if (Array.isArray(required)) {
      seen += 1
      for (const name of required) if (!Object.hasOwn(properties, name)) wrong.push(`${at} requires ${name}`)
    }
    for (const [name, member] of Object.entries(value))
      look(member, `${at}/${name}`, /^(anyOf|not|\d+)$/.test(name) ? properties : undefined)
  }
  look(document, '#')
  expect(wrong).toEqual([])
  expect(seen).toBeGreaterThan(20)
})

test('answers that carry a credential or administration are those that the harness wants to be no-store', () => {
  const { isPrivate } = createAnswerCheck(document)
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })),
  )
  const open = operations.filter(({ method, path }) => !isPrivate(method, path)).map(({ path }) => path)
  expect(new Set(open)).toEqual(
    new Set([
      ...['/oauth/jwks', '/openapi.json', '/models', '/models/{model}', '/livez', '/readyz'],
      ...['/.well-known/oauth-authorization-server/{base}', '/.well-known/oauth-protected-resource/{base}'],
      ...Object.values(inferencePaths).map(({ endpoint }) => endpoint),
    ]),
  )
  expect(isPrivate('POST', '/oauth/token')).toBe(true)
})

test('parameters of paths and headers of responses are described', () => {
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const { parameters = [], responses } of Object.values(methods)) {
      for (const parameter of (parameters as Record<string, unknown>[]).filter((each) => each.in === 'path'))
        expect({ path, ...parameter }).toHaveProperty('description')
      for (const [status, { headers }] of Object.entries(responses)) {
        expect(Object.keys(headers ?? {})).toEqual([
          'x-request-id',
          ...(status === '401' ? ['www-authenticate'] : []),
          ...(status === '429' || status === '503' ? ['retry-after'] : []),
        ])
      }
    }
  }
})

test('every path in it answers, and no method but the ones in it', async () => {
  for (const [path, operations] of Object.entries(document.paths)) {
    const [beside] = Object.values(operations).flatMap(({ servers = [] }) => servers)
    const url = (beside?.url ?? federation.server.baseUrl) + path.replaceAll(/\{\w+\}/g, 'x')
    const response = await fetch(url, { method: 'OPTIONS' })
    expect({ path, status: response.status }).toEqual({ path, status: 405 })
    const allowed = (response.headers.get('allow') ?? '').split(', ').filter((method) => method !== 'HEAD')
    expect(allowed.toSorted()).toEqual(
      Object.keys(operations)
        .map((method) => method.toUpperCase())
        .toSorted(),
    )
  }
})

test('the responses of exchange, key set and inference match it', async () => {
  const check = createAnswerCheck(document)
  const { baseUrl } = federation.server
  const token = await federation.mint()
  const forms: Record<string, string | undefined>[] = [
    {},
    { grant_type: 'password' },
    { scope: 'all' },
    { federation_policy_id: undefined },
    { federation_policy_id: 'none' },
  ]
  for (const fields of forms) {
    const response = await federation.exchange(token, fields)
    check('POST', '/oauth/token', response.status, await response.json())
  }
  const large = await fetch(`${baseUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ a: 'x'.repeat(40_000) }),
  })
  check('POST', '/oauth/token', large.status, await large.json())
  check('GET', '/oauth/jwks', 200, await (await fetch(`${baseUrl}/oauth/jwks`)).json())
  for (const [authorization, body] of [
    ['Bearer x', '{}'],
    [`Bearer ${federation.key.key}`, 'x'],
    [`Bearer ${federation.key.key}`, '{"messages":[]}'],
  ] as const) {
    const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', headers: { authorization }, body })
    check('POST', '/chat/completions', response.status, await response.json())
  }
  expect(Object.keys(document.paths).length).toBeGreaterThan(12)
})
