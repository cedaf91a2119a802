// The admin operations over HTTP: who may, what they answer, that one organization never meets another, and the record of each change.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Row } from '../../support/latchkey.ts'
import { type Managed, startManaged } from '../../support/management-keys.ts'
import { openRawRequest } from '../../support/raw-request.ts'
import { createKeyPair } from '../../support/subject-token.ts'

let federation: Managed['federation']
let admin: string
let reader: string
let stranger: string
let call: Managed['call']
beforeAll(async () => {
  ;({ federation, admin, reader, stranger, call } = await startManaged())
})
afterAll(() => federation.stop())

const issuers = '/workload-identity/issuers'
const policies = '/workload-identity/policies'
const audit = '/workload-identity/audit'
const { publicJwk: jwk } = await createKeyPair('ES256', 'es')
const pasted = { name: 'pasted', issuer_url: 'https://pasted.example' }
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const policy = { issuer: 'idp', key: 'target', audience: 'aud', subject: 'sub' }

describe('a management key', () => {
  test('manages issuers, and each change is reported with who, before and after', async () => {
    const made = await call('POST', issuers, admin, { name: 'github', issuer_url: 'https://github.example' })
    expect(made.status).toBe(201)
    const { id } = made.data as Row
    expect((await call('GET', `${issuers}/${id}`, admin)).data).toMatchObject(made.data as Row)
    expect((await call('GET', `${issuers}/github`, admin)).data).toMatchObject(made.data as Row)
    expect((await call('PATCH', `${issuers}/${id}`, admin, { clock_skew_seconds: 7 })).data).toMatchObject({
      clock_skew_seconds: 7,
    })
    expect((await call('DELETE', `${issuers}/${id}`, admin)).data).toEqual({ id, deleted: true })
    expect((await call('GET', `${issuers}/${id}`, admin)).status).toBe(404)

    const { data } = await call('GET', `${audit}/changes?limit=3`, admin)
    const keys = await federation.admin<{ data: Row[] }>('keys.list')
    const by = keys.data.find(({ name }) => name === 'admin')?.id
    const record = { actor: 'key', actor_key_id: by, kind: 'issuer', target_id: id }
    expect(data).toMatchObject([
      {
        ...record,
        operation: 'issuers.delete',
        before: { deleted_at: null },
        after: { deleted_at: expect.stringMatching(isoTime) },
      },
      { ...record, operation: 'issuers.update', before: { clock_skew_seconds: 30 }, after: { clock_skew_seconds: 7 } },
      { ...record, operation: 'issuers.add', before: null, after: { name: 'github' } },
    ])
  })

  test('manages policies, which exchanges obey at once', async () => {
    const made = await call('POST', policies, admin, {
      name: 'http',
      ...policy,
      audience: 'latchkey-tests',
      subject: 'workload-1',
    })
    const { id } = made.data as Row
    const exchange = async () =>
      (await federation.exchange(await federation.mint(), { federation_policy_id: id })).status
    expect(await exchange()).toBe(200)
    expect((await call('POST', `${policies}/${id}/pause`, admin)).data).toMatchObject({ enabled: false })
    expect(await exchange()).toBe(400)
    expect((await call('POST', `${policies}/${id}/resume`, admin)).status).toBe(200)
    const token = await federation.mint()
    const checked = await call('POST', `${policies}/check`, reader, { token, policy: id })
    expect(checked.data).toMatchObject([{ policy_id: id, accepted: true }])
    const condition = { condition: 'subject == "nobody"' }
    expect((await call('PATCH', `${policies}/${id}`, admin, condition)).data).toMatchObject(condition)
    expect(await exchange()).toBe(400)
    expect((await call('GET', `${audit}?limit=1`, reader)).data).toMatchObject([{ reason: 'condition_false' }])
    expect((await call('DELETE', `${policies}/${id}`, admin)).status).toBe(200)
  })

  test('tries a policy without saving it, as a read-only one may: there is no id, since there is no policy', async () => {
    const before = (await call('GET', policies, admin)).data as unknown[]
    for (const key of [admin, reader]) {
      const { status, data } = await call('POST', policies, key, { name: 'dry', ...policy, dry_run: true })
      expect({ status, data }).toMatchObject({ status: 200, data: { name: 'dry', enabled: true, dry_run: true } })
      expect(Object.keys(data as object)).not.toContainAnyValues(['id', 'created_at', 'updated_at'])
    }
    expect((await call('GET', policies, admin)).data).toHaveLength(before.length)
  })

  test('pauses and resumes a policy by a change as well', async () => {
    const path = `${policies}/${federation.policy.id}`
    const exchange = async () => (await federation.exchange(await federation.mint())).status
    expect((await call('PATCH', path, admin, { enabled: false })).data).toMatchObject({ enabled: false })
    expect(await exchange()).toBe(400)
    expect((await call('PATCH', path, admin, { enabled: true })).data).toMatchObject({ enabled: true })
    expect(await exchange()).toBe(200)
  })

  test('tries an issuer, saved or not, without saving anything', async () => {
    const before = (await call('GET', issuers, admin)).data
    const isFine = { issuer_url: federation.issuerUrl, ok: true }
    const unsaved = { issuer_url: federation.issuerUrl }
    expect((await call('POST', `${issuers}/verify`, admin, unsaved)).data).toMatchObject(isFine)
    expect((await call('POST', `${issuers}/idp/verify`, admin)).data).toMatchObject(isFine)
    const closed = { issuer_url: 'http://127.0.0.1:1' }
    expect((await call('POST', `${issuers}/verify`, admin, closed)).data).toMatchObject({ ...closed, ok: false })
    expect((await call('GET', issuers, admin)).data).toEqual(before)
  })

  test('sees what changed as the service shows it: flags, times, and no hash of a key', async () => {
    const path = `${policies}/${federation.policy.id}`
    await call('POST', `${path}/pause`, admin)
    await call('POST', `${path}/resume`, admin)
    await federation.admin('keys.create', { name: 'seen' })
    const { data } = await call('GET', `${audit}/changes?limit=2`, reader)
    const [key, resumed] = data as [Row, Row]
    const times = { created_at: expect.stringMatching(isoTime), updated_at: expect.stringMatching(isoTime) }
    expect(resumed).toMatchObject({
      before: { ...times, enabled: false, replay_protection: false, deleted_at: null },
      after: { ...times, enabled: true },
    })
    expect(key).toMatchObject({ kind: 'key', before: null, after: { ...times, name: 'seen', disabled: false } })
    expect(key.after).not.toHaveProperty('hash')
  })
})

describe('the audit', () => {
  const refusedReasons = async (query: string, key = reader) => {
    const { status, data } = await call('GET', `${audit}?${query}`, key)
    return status === 200 ? (data as Row[]).map(({ reason, policy_id }) => ({ reason, policy_id })) : status
  }

  test('is narrowed by policy, also a deleted one by its id, and by reason', async () => {
    const { data } = await call('POST', policies, admin, { name: '17', ...policy })
    const { id } = data as Row
    await federation.exchange(await federation.mint(), { federation_policy_id: id })
    await federation.exchange('x', { federation_policy_id: id })
    const wrongSubject = { reason: 'subject_mismatch', policy_id: id }
    const notJwt = { reason: 'subject_token_not_jwt', policy_id: id }
    expect(await refusedReasons('policy=17')).toEqual([notJwt, wrongSubject])
    expect(await refusedReasons(`policy=${id}&reason=subject_mismatch`)).toEqual([wrongSubject])
    expect(await refusedReasons('policy=policy&reason=subject_mismatch')).toEqual([])
    expect(await refusedReasons(`policy=${id}`, stranger)).toBe(404)
    await call('DELETE', `${policies}/${id}`, admin)
    expect(await refusedReasons(`policy=${id}&limit=1`)).toEqual([notJwt])
    expect(await refusedReasons('policy=17')).toBe(404)
    expect(await refusedReasons('reason=subject_missmatch')).toBe(400)
  })

  test('shows one exchange by the request id of its answer, to its own organization', async () => {
    const response = await federation.exchange('x')
    const path = `${audit}/${response.headers.get('x-request-id')}`
    expect((await call('GET', path, reader)).data).toMatchObject({ reason: 'subject_token_not_jwt' })
    expect((await call('GET', path, stranger)).status).toBe(404)
    expect((await call('GET', `${audit}/${crypto.randomUUID()}`, reader)).status).toBe(404)
    expect((await call('GET', `${audit}/x`, reader)).status).toBe(400)
  })
})

describe('refused is', () => {
  const rows: [
    name: string,
    key: () => string | undefined,
    method: string,
    path: string,
    body: object | undefined,
    status: number,
  ][] = [
    ['nobody', () => undefined, 'GET', issuers, undefined, 401],
    ['an unknown key', () => `sk-lk-v1-${'0'.repeat(64)}`, 'GET', issuers, undefined, 401],
    ['an inference key', () => federation.key.key, 'GET', issuers, undefined, 403],
    ['a read-only key that would write', () => reader, 'POST', issuers, { name: 'x', issuer_url: 'https://x' }, 403],
    ['a read-only key that would create', () => reader, 'POST', policies, { name: 'x', ...policy }, 403],
    [
      'a read-only key that would create by saying that it would not',
      () => reader,
      'POST',
      policies,
      { name: 'x', ...policy, dry_run: false },
      403,
    ],
    [
      'a read-only key that leaves open whether it would create',
      () => reader,
      'POST',
      policies,
      { name: 'x', ...policy, dry_run: 'true' },
      403,
    ],
    ['a read-only key that would try an issuer', () => reader, 'POST', `${issuers}/verify`, pasted, 403],
    ['a saved issuer tried as another', () => admin, 'POST', `${issuers}/idp/verify`, { jwks_url: 'https://x' }, 400],
    ['a read-only key that would pause', () => reader, 'POST', `${policies}/policy/pause`, undefined, 403],
    ['a read-only key that would delete', () => reader, 'DELETE', `${policies}/policy`, undefined, 403],
    ['an unknown field', () => admin, 'POST', issuers, { name: 'x', issuer_url: 'https://x', color: 1 }, 400],
    ['a wrong type', () => admin, 'PATCH', `${policies}/policy`, { max_lifetime_seconds: '60' }, 400],
    ['a condition that cannot be', () => admin, 'PATCH', `${policies}/policy`, { condition: 'subject' }, 400],
    ['a NUL', () => admin, 'PATCH', `${policies}/policy`, { subject: 'a\0b' }, 400],
    ['an update of nothing', () => admin, 'PATCH', `${policies}/policy`, {}, 400],
    ['an unknown query', () => admin, 'GET', `${audit}?color=1`, undefined, 400],
    ['a name that is taken', () => admin, 'POST', policies, { name: 'policy', ...policy }, 409],
    ['an unknown policy', () => admin, 'GET', `${policies}/none`, undefined, 404],
    [
      'another organization in the body',
      () => admin,
      'POST',
      policies,
      { name: 'x', ...policy, organization: 'other' },
      400,
    ],
    ['another policy than in the path', () => admin, 'PATCH', `${policies}/policy`, { policy: 'x', subject: 'y' }, 400],
    ['a name that means something in a path', () => admin, 'POST', policies, { name: 'check', ...policy }, 400],
    ["another organization's key by its hash", () => stranger, 'POST', policies, { name: 'x', ...policy }, 404],
    ['a time that no clock tells', () => admin, 'GET', `${audit}?since=2026-W10`, undefined, 400],
    ['a key that is none', () => admin, 'POST', issuers, { ...pasted, jwks: { keys: [null] } }, 400],
    ['a private key', () => admin, 'POST', issuers, { ...pasted, jwks: { keys: [{ ...jwk, d: 'AA' }] } }, 400],
    ['a private key beside', () => admin, 'POST', issuers, { ...pasted, jwks: { keys: [jwk], old: { d: 'AA' } } }, 400],
    ['the other prime', () => admin, 'POST', issuers, { ...pasted, jwks: { keys: [{ ...jwk, dp: 'AA' }] } }, 400],
    [
      'another organization in the query',
      () => stranger,
      'GET',
      `${policies}/policy?organization=default`,
      undefined,
      400,
    ],
  ]
  for (const [name, key, method, path, body, status] of rows) {
    test(`${name}: ${status}`, async () => {
      const answer = await call(method, path, key(), body)
      expect(answer.status).toBe(status)
      expect(answer.error).toEqual(status >= 400 ? expect.objectContaining({ code: status }) : undefined)
    })
  }

  test('a key of another organization, which sees and reaches nothing here', async () => {
    for (const path of [issuers, policies, audit, `${audit}/changes`]) {
      const { status, data } = await call('GET', path, stranger)
      expect(status).toBe(200)
      expect(JSON.stringify(data)).not.toContain(federation.policy.id)
    }
    for (const [method, path] of [
      ['GET', `${policies}/${federation.policy.id}`],
      ['PATCH', `${policies}/${federation.policy.id}`],
      ['DELETE', `${policies}/${federation.policy.id}`],
      ['POST', `${policies}/${federation.policy.id}/pause`],
      ['GET', `${issuers}/${federation.issuer.id}`],
      ['DELETE', `${issuers}/${federation.issuer.id}`],
      ['POST', `${issuers}/${federation.issuer.id}/verify`],
    ] as const)
      expect((await call(method, path, stranger, method === 'PATCH' ? { subject: 'x' } : undefined)).status).toBe(404)
    expect((await federation.exchange(await federation.mint())).status).toBe(200)
  })

  test('an access token, which never manages', async () => {
    const reply = await federation.exchange(await federation.mint())
    const { access_token } = (await reply.json()) as { access_token: string }
    expect((await call('GET', issuers, access_token)).status).toBe(403)
  })
})

test('a key that is deleted while its request is on the way changes nothing any more', async () => {
  const { key, id } = await federation.admin<Row & { key: string }>('keys.create', {
    name: 'leaver',
    kind: 'management',
  })
  const body = JSON.stringify({ name: 'late', ...policy })
  const { socket, answer } = openRawRequest(federation.server.baseUrl + policies, 'POST', {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': String(body.length),
  })
  socket.write(body.slice(0, 10))
  // An answer on another connection shows that the server has had the time to look at the first.
  await call('GET', policies, admin)
  await federation.admin('keys.delete', { key: id })
  socket.write(body.slice(10))
  expect((await answer).status).toBe(401)
  expect((await call('GET', `${policies}/late`, admin)).status).toBe(404)
})

test('what is refused is reported without the credentials in it', async () => {
  const token = await federation.mint()
  for (const secret of [federation.key.key, token]) {
    const refused = await call('POST', policies, admin, { name: 'x', ...policy, key: secret.slice(0, 512) })
    expect(JSON.stringify(refused)).not.toContain(secret.slice(20, 60))
    await call('GET', `${policies}/${secret}`, admin)
    expect(federation.logLines.join('')).not.toContain(secret.slice(20, 60))
  }
})

test('a pasted key set is kept as its public, usable keys alone', async () => {
  const jwks = { keys: [{ ...jwk, x5t: 'more' }, { kty: 'other' }], more: 1 }
  const { data } = await call('POST', issuers, admin, { ...pasted, jwks })
  expect((data as { jwks: unknown }).jwks).toEqual({ keys: [{ ...jwk, use: undefined, alg: 'ES256' }] })
})
