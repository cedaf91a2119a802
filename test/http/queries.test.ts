// Queries: an endpoint takes the parameters that the document gives it, each once and in its form, and refuses the rest. (Inference paths
// and public ones ignore queries, as clients of other services send some.)
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { readOwnDocument } from '../support/openapi.ts'

const { paths } = await readOwnDocument()
let federation: Federation
let admin: Row & { key: string }
beforeAll(async () => {
  federation = await startFederation()
  admin = await federation.admin('keys.create', { name: 'admin', kind: 'management' })
  await call('POST', '/presets/there/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'Hi' }] })
})
afterAll(() => federation.stop())

async function call(method: string, path: string, body?: object, key: unknown = admin.key) {
  const response = await fetch(federation.server.baseUrl + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  return {
    status: response.status,
    answer: (await response.json()) as { data?: unknown[]; error?: { message: string } },
  }
}

const there = (path: string) =>
  path
    .replace('{hash}', String(federation.key.hash))
    .replace('{issuer}', 'idp')
    .replace('{policy}', 'policy')
    .replace('{slug}', 'there')
    .replace('{version}', '1')
    .replace('{request_id}', crypto.randomUUID())

describe('a parameter that an endpoint does not have is refused, and nothing is done:', () => {
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { security, responses }] of Object.entries(operations)) {
      // Public paths and those that an inference server answers.
      if (security.length === 0 || responses.default !== undefined) continue
      test(`${method.toUpperCase()} ${path}`, async () => {
        const body = method === 'post' || method === 'patch' ? {} : undefined
        // Management keys make no inference requests that they could look up.
        const key = path === '/generation' ? federation.key.key : admin.key
        const { status, answer } = await call(method.toUpperCase(), `${there(path)}?surprise=1`, body, key)
        expect({ status, message: answer.error?.message }).toEqual({
          status: 400,
          message: expect.stringContaining('surprise'),
        })
      })
    }
})

describe('a value', () => {
  const rows: [query: string, message: string][] = [
    ['/keys?include_disabled=maybe', '"maybe" is not a valid value for include_disabled: use true or false'],
    ['/keys?include_disabled=', '"" is not a valid value for include_disabled: use true or false'],
    ['/keys?offset=ten', '"ten" is not a valid value for offset: use a whole number'],
    ['/keys?offset=1.0', '"1.0" is not a valid value for offset: use a whole number'],
    ['/keys?offset=-1', 'offset must be non-negative (was -1)'],
    ['/keys?offset=9007199254740992', 'offset must be at most 9007199254740991 (was 9007199254740992)'],
    ['/presets?limit=101', 'limit must be at most 100 (was 101)'],
    ['/presets?limit=1&limit=2', '"limit" is repeated in the query: send it once'],
    ['/presets?page=2', '"page" is not a query parameter of this path: use contains, limit, offset, workspace_id'],
    ['/presets/there?offset=2', '"offset" is not a query parameter of this path: use workspace_id'],
    ['/workload-identity/audit?limit=ten', '"ten" is not a valid value for limit: use a whole number'],
    ['/workload-identity/audit?outcome=issued&outcome=refused', '"outcome" is repeated in the query: send it once'],
  ]
  for (const [path, message] of rows)
    test(`${path} is refused`, async () => {
      expect(await call('GET', path)).toEqual({
        status: 400,
        answer: {
          error: { code: 400, message, metadata: expect.objectContaining({ error_type: expect.any(String) }) },
        } as never,
      })
    })

  test('far beyond the end of a list gives an empty page', async () => {
    for (const path of ['/keys?offset=10000000000', '/presets?offset=10000000000&limit=1', '/keys?offset=007'])
      expect(await call('GET', path)).toMatchObject({ status: 200, answer: { data: [] } })
  })
})
