// What shows an admin which command helps: commands show it, and answers over HTTP, whose callers type none, do not.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Federation, type Row, startFederation } from '../../support/latchkey.ts'
import { createKeyPair } from '../../support/subject-token.ts'

let federation: Federation
let admin: string
beforeAll(async () => {
  federation = await startFederation()
  const { key } = await federation.admin<Row & { key: string }>('keys.create', { name: 'admin', kind: 'management' })
  admin = key
})
afterAll(() => federation.stop())

const issuers = '/workload-identity/issuers'
const policies = '/workload-identity/policies'
const audit = '/workload-identity/audit'
const policy = { issuer: 'idp', key: 'target', audience: 'aud', subject: 'sub' }
const { publicJwk: jwk } = await createKeyPair('ES256', 'es')

test('what is refused over HTTP speaks of no commands, and what is refused to a command does', async () => {
  await federation.admin('issuers.add', { name: 'kept', issuer_url: 'https://kept.example', jwks: { keys: [jwk] } })
  for (const [method, path, body] of [
    ['GET', `${policies}/none`, undefined],
    ['POST', policies, { name: 'x', ...policy, key: 'none' }],
    ['POST', policies, { name: 'x', ...policy, subject: undefined }],
    ['PATCH', `${issuers}/idp`, {}],
    ['POST', `${issuers}/verify`, {}],
    ['POST', `${issuers}/kept/refresh`, undefined],
    ['GET', `${audit}?policy=none`, undefined],
    ['GET', `${audit}/none`, undefined],
  ] as const) {
    const response = await fetch(federation.server.baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    expect(response.status).toBeOneOf([400, 404])
    expect(await response.text()).not.toMatch(/latchkey [a-z]|--[a-z]/)
  }
  await expect(federation.admin('keys.show', { key: 'none' })).rejects.toMatchObject({
    message: 'There is no key "none"',
    hint: '; see: latchkey keys list',
  })
})
