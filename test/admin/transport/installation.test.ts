// What belongs to the whole installation over HTTP: who may see and change it, and that no secret is in it. Also the manual, and changes that
// name the version that they are based on.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isInstallationOrganization } from '../../../src/admin/operation/installation.ts'
import { type Federation, type Row, startFederation, startTestServer, upstreamApiKey } from '../../support/latchkey.ts'
import { createApiCaller } from '../../support/openapi.ts'

let federation: Federation
let admin: string
let reader: string
let stranger: string
let call: Awaited<ReturnType<typeof createApiCaller>>
beforeAll(async () => {
  const texts = { LATCHKEY_LOG_LEVEL: 'info', LATCHKEY_UPSTREAM_API_KEY: upstreamApiKey }
  federation = await startFederation({ start: { settings: { texts, reread: () => texts } } })
  call = await createApiCaller(federation.server.baseUrl)
  const create = async (name: string, kind: string, organization = 'default') =>
    (await federation.admin<Row & { key: string }>('keys.create', { name, kind, organization })).key
  admin = await create('admin', 'management')
  reader = await create('reader', 'management_read_only')
  await federation.admin('organizations.create', { name: 'other' })
  stranger = await create('stranger', 'management', 'other')
  const credential = 'upstream-credential'
  await federation.admin('upstreams.add', { name: 'second', base_url: 'http://127.0.0.1:1/v1', credential })
  await federation.admin('prices.set', { prices: ['llama-8b', 'llama-70b', 'qwen'].map((model) => priceOf(model)) })
})
afterAll(() => federation.stop())

const priceOf = (model: string) => ({ model, prompt: 1, completion: 2 })
const reads = ['', '/upstreams', '/upstreams/second', '/prices', '/signing-keys'].map((path) => `/installation${path}`)

describe('the installation', () => {
  test('is visible to the keys of its first organization, also read-only ones, and to no other', async () => {
    for (const path of reads) {
      expect((await call('GET', path, reader)).status).toBe(200)
      const refused = await call('GET', path, stranger)
      expect(refused).toMatchObject({ status: 403, error: { message: expect.stringContaining('whole installation') } })
      expect((await call('GET', path, federation.key.key)).status).toBe(403)
    }
  })

  test('stays with its first organization when the clock is set back', async () => {
    let now = Date.now()
    const latchkey = await startTestServer({ dependencies: { now: () => now } })
    now -= 86_400_000
    await latchkey.admin('organizations.create', { name: 'later' })
    const { organizations } = latchkey.server.context.registry
    const owners = [...organizations.values()].filter(({ id }) =>
      isInstallationOrganization(latchkey.server.context.registry, id),
    )
    expect(owners.map(({ name }) => name)).toEqual(['default'])
    await latchkey.stop()
  })

  test('shows no credential, private key or secret setting', async () => {
    const texts = await Promise.all(reads.map(async (path) => JSON.stringify((await call('GET', path, admin)).body)))
    for (const secret of ['upstream-credential', upstreamApiKey, 'private', 'encrypted', '"d":'])
      expect(texts.join()).not.toContain(secret)
    expect((await call('GET', '/installation', reader)).data).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      base_url: federation.server.baseUrl,
      organizations: 2,
      settings: { LATCHKEY_LOG_LEVEL: 'info', LATCHKEY_UPSTREAM_API_KEY: 'set' },
      backup: { folder: null, failing: false },
      tls: null,
    })
  })

  test('lists prices in pages, and finds them by a part of the model', async () => {
    const { data, body } = await call('GET', '/installation/prices?contains=LLAMA&limit=1', reader)
    expect({ data, body }).toMatchObject({ data: [{ model: 'llama-70b', prompt: 1 }], body: { total_count: 2 } })
  })

  test('checks an upstream for a key that may write', async () => {
    const path = '/installation/upstreams/second/check'
    expect((await call('POST', path, reader)).status).toBe(403)
    expect((await call('POST', path, stranger)).status).toBe(403)
    expect((await call('POST', path, admin)).data).toMatchObject([{ name: 'second', ok: false, models: null }])
    expect((await call('POST', '/installation/upstreams/none/check', admin)).status).toBe(404)
  })

  test('rotates its signing key for a key that may write, with a record that only its owner sees', async () => {
    const path = '/installation/signing-keys/rotate'
    expect((await call('POST', path, reader)).status).toBe(403)
    expect((await call('POST', path, stranger)).status).toBe(403)
    const made = await call('POST', path, admin)
    expect(made).toMatchObject({ status: 201, data: { state: 'next' } })
    expect((await call('POST', path, admin)).status).toBe(409)
    const { id } = made.data as Row
    const record = { operation: 'signing_keys.rotate', kind: 'signing_key', target_id: id, actor: 'key' }
    const changes = async (query: string, key = reader) =>
      (await call('GET', `/workload-identity/audit/changes?${query}`, key)).data
    expect(await changes(`installation=true&target_id=${id}`)).toMatchObject([record])
    expect(await changes(`target_id=${id}`)).toEqual([])
    expect(await changes(`installation=true&target_id=${id}`, stranger)).toEqual([])
    expect(await changes('kind=policy&limit=1')).toMatchObject([{ kind: 'policy' }])
  })

  test('is part of the findings where they are asked for by its owner', async () => {
    const schemaOf = async (query: string, key: string) =>
      ((await call('GET', `/workload-identity/findings${query}`, key)).data as { schema: number | null }).schema
    expect(await schemaOf('?installation=true', reader)).toBeGreaterThan(0)
    expect(await schemaOf('', reader)).toBeNull()
    expect(await schemaOf('?installation=true', stranger)).toBeNull()
  })
})

describe('a change that names its version', () => {
  const presetPath = '/presets/support'
  const things = async (): Promise<[path: string, change: object][]> => {
    await call('POST', `${presetPath}/chat/completions`, admin, {
      model: 'm',
      messages: [{ role: 'user', content: 'x' }],
    })
    return [
      ['/workload-identity/policies/policy', { max_lifetime_seconds: 600 }],
      ['/workload-identity/issuers/idp', { clock_skew_seconds: 9 }],
      [`/keys/${federation.key.hash}`, { requests_per_minute: 9 }],
      [presetPath, { description: 'other' }],
    ]
  }
  const send = (method: string, path: string, etag?: string, body?: object) =>
    fetch(federation.server.baseUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${admin}`,
        'content-type': 'application/json',
        ...(etag === undefined ? {} : { 'if-match': etag }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    })

  test('is refused where somebody else was first, shows what they saved, and leaves it', async () => {
    for (const [path, change] of await things()) {
      const etag = (await send('GET', path)).headers.get('etag') ?? ''
      expect(etag).toMatch(/^"[\d-]+T[\d:.]+Z"$/)
      const first = await send('PATCH', path, etag, change)
      expect([path, first.status]).toEqual([path, 200])
      const second = await send('PATCH', path, etag, change)
      expect([path, second.status]).toEqual([path, 412])
      expect(await second.json()).toMatchObject({
        error: {
          code: 412,
          message: expect.stringContaining('read it again'),
          metadata: { error_type: expect.any(String) },
        },
        data: change,
      })
      expect(second.headers.get('etag')).toBe(first.headers.get('etag'))
      expect((await send('PATCH', path, first.headers.get('etag') ?? '', change)).status).toBe(200)
      const current = (await send('GET', path)).headers.get('etag') ?? ''
      // A weak tag never matches in If-Match (RFC 9110 §13.1.1).
      expect([path, (await send('PATCH', path, `W/${current}`, change)).status]).toEqual([path, 412])
      expect((await send('PATCH', path, '*', change)).status).toBe(200)
      expect((await send('PATCH', path, undefined, { ...change, if_match: '*' })).status).toBe(400)
    }
  })

  test('completes a request with a preset without sending it', async () => {
    const body = { messages: [{ role: 'user', content: 'hello' }] }
    const { data } = await call('POST', `${presetPath}/complete`, reader, body)
    expect(data).toMatchObject({ preset_version: 'support@1', body: { model: 'm', ...body } })
    expect((await call('POST', `${presetPath}/complete`, reader, { preset: 'support@7' })).status).toBe(404)
    expect((await call('POST', `${presetPath}/complete`, reader, { preset: 'another' })).status).toBe(400)
    expect((await call('POST', `${presetPath}/complete`, stranger, body)).status).toBe(404)
  })
})
