// The preset endpoints (reference: Preset endpoints): making, finding, changing, and who may.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Inference, startInference } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'

let latchkey: Inference
let management: string
let readOnly: string
let inference: string
beforeAll(async () => {
  latchkey = await startInference()
  const create = async (name: string, kind: string) =>
    (await latchkey.admin<Row & { key: string }>('keys.create', { name, kind })).key
  management = await create('admin', 'management')
  readOnly = await create('dashboard', 'management_read_only')
  inference = await create('app', 'inference')
})
afterAll(() => latchkey.stop())

const chat = { model: 'big', temperature: 0.3, messages: [{ role: 'system', content: 'Be brief' }] }

async function call(method: string, path: string, { body, key = management }: { body?: unknown; key?: string } = {}) {
  const response = await fetch(`${latchkey.server.baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? null : JSON.stringify(body),
  })
  // biome-ignore lint/suspicious/noExplicitAny: whatever it is, the assertions say what it must be
  return { status: response.status, ...((await response.json()) as any) }
}
/** Posts a version over the one that the ETag names. */
async function postOver(slug: string, etag: string, body: object) {
  const response = await fetch(`${latchkey.server.baseUrl}/presets/${slug}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${management}`, 'content-type': 'application/json', 'if-match': etag },
    body: JSON.stringify(body),
  })
  // biome-ignore lint/suspicious/noExplicitAny: whatever it is, the assertions say what it must be
  return { status: response.status, etag: response.headers.get('etag'), ...((await response.json()) as any) }
}
let made = 0
/** A preset of the test's own. */
async function createPreset(body: object = chat) {
  const slug = `preset-${made++}`
  await call('POST', `/presets/${slug}/chat/completions`, { body })
  return slug
}

describe('a post', () => {
  test('with If-Match makes a version only over the one that it names, and shows the newer one', async () => {
    const slug = await createPreset()
    const show = async () => (await call('GET', `/presets/${slug}`)).data
    const etag = `"${(await show()).updated_at}"`
    await latchkey.admin('presets.update', { preset: slug, description: 'theirs' })
    const refused = await postOver(slug, etag, { ...chat, temperature: 0.9 })
    expect(refused).toMatchObject({ status: 412, data: { description: 'theirs', designated_version: { version: 1 } } })
    expect(refused.etag).toBe(`"${(await show()).updated_at}"`)
    expect((await show()).designated_version.version).toBe(1)
    expect(await postOver(slug, refused.etag, { ...chat, temperature: 0.9 })).toMatchObject({
      status: 200,
      data: { designated_version: { version: 2, config: { temperature: 0.9 } } },
    })
    for (const tag of [etag, '*']) expect((await postOver('does-not-exist', tag, chat)).status).toBe(404)
    expect((await call('GET', '/presets/does-not-exist')).status).toBe(404)
  })

  test('makes the preset and its first version', async () => {
    const { status, data } = await call('POST', '/presets/first.of_all~1/chat/completions', { body: chat })
    expect(status).toBe(200)
    expect(data).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'first.of_all~1',
      slug: 'first.of_all~1',
      description: null,
      status: 'active',
      status_updated_at: null,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      updated_at: data.created_at,
      creator_user_id: expect.stringMatching(/^user_[A-Za-z0-9]{24}$/),
      workspace_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      designated_version_id: data.designated_version.id,
      designated_version: {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        preset_id: data.id,
        version: 1,
        config: { model: 'big', temperature: 0.3 },
        system_prompt: 'Be brief',
        creator_id: data.creator_user_id,
        created_at: data.created_at,
        updated_at: data.created_at,
      },
    })
    expect(await call('GET', '/presets/first.of_all~1')).toEqual({ status: 200, data })
  })

  test('to a slug that there is makes its next version and designates it, even when nothing differs', async () => {
    const slug = await createPreset()
    const { data } = await call('POST', `/presets/${slug}/chat/completions`, { body: chat })
    expect(data.designated_version).toMatchObject({ version: 2, config: { model: 'big', temperature: 0.3 } })
    expect(await call('GET', `/presets/${slug}`)).toEqual({ status: 200, data })
  })

  test.each([
    ['messages', { model: 'm', max_tokens: 9, system: 'Be brief', messages: [{ role: 'user', content: 'x' }] }],
    ['responses', { model: 'm', max_output_tokens: 9, instructions: 'Be brief', input: 'x' }],
  ])('takes a body of /%s', async (path, body) => {
    const { status, data } = await call('POST', `/presets/from-${path}/${path}`, { body })
    expect({ status, ...data.designated_version }).toMatchObject({
      status: 200,
      system_prompt: 'Be brief',
      config: { model: 'm' },
    })
  })

  test.each([
    ['a wrong body', 'a', { ...chat, temperature: 3 }, /^temperature: must be a number from 0 to 2$/],
    ['no messages', 'a', { model: 'm' }, /^messages: /],
    ['a slug with a blank', 'a%20b', chat, /^"a b" is not a valid slug: use 1 to 128 letters, digits or \. _ ~ -$/],
    ['a slug that is too long', 'a'.repeat(129), chat, /is not a valid slug: use 1 to 128 /],
    [
      'settings that are too many',
      'a',
      { ...chat, stop: ['x'.repeat(262_145)] },
      /^Settings and system prompt have \d+ characters: a preset has at most 262144;/,
    ],
  ])('with %s is refused and makes nothing', async (_, slug, body, message) => {
    const before = await call('GET', '/presets')
    expect(await call('POST', `/presets/${slug}/chat/completions`, { body })).toEqual({
      status: 400,
      error: { code: 400, message: expect.stringMatching(message), metadata: { error_type: expect.any(String) } },
    })
    expect(await call('GET', '/presets')).toEqual(before)
  })

  test.each(['chat/completions', 'messages', 'responses'])('without a body to /%s is refused', async (path) => {
    const slug = await createPreset()
    for (const body of [undefined, {}])
      expect(await call('POST', `/presets/${slug}/${path}`, { body })).toEqual({
        status: 400,
        error: {
          code: 400,
          message: expect.stringMatching(/^The body is empty: send the JSON of a .+ request$/),
          metadata: { error_type: expect.any(String) },
        },
      })
    expect(await call('GET', `/presets/${slug}`)).toMatchObject({ data: { designated_version: { version: 1 } } })
  })

  test('to an archived preset conflicts until it is restored', async () => {
    const slug = await createPreset()
    await call('DELETE', `/presets/${slug}`)
    const post = () => call('POST', `/presets/${slug}/chat/completions`, { body: chat })
    expect(await post()).toMatchObject({
      status: 409,
      error: { code: 409, message: expect.stringMatching(/archived/), metadata: { error_type: expect.any(String) } },
    })
    await call('POST', `/presets/${slug}/restore`)
    expect((await post()).data.designated_version.version).toBe(2)
  })
})

describe('who may', () => {
  test.each([
    ['an inference key', () => inference],
    ['a read-only management key', () => readOnly],
  ])('%s reads and changes nothing', async (_, key) => {
    const slug = await createPreset()
    const before = await call('GET', `/presets/${slug}`)
    expect(await call('GET', `/presets/${slug}`, { key: key() })).toEqual(before)
    expect((await call('GET', '/presets', { key: key() })).status).toBe(200)
    expect((await call('GET', `/presets/${slug}/versions`, { key: key() })).status).toBe(200)
    expect((await call('GET', `/presets/${slug}/versions/1`, { key: key() })).status).toBe(200)
    for (const [method, path, body] of [
      ['POST', '/chat/completions', chat],
      ['POST', '/messages', chat],
      ['POST', '/responses', chat],
      ['PATCH', '', { name: 'x' }],
      ['DELETE', '', undefined],
      ['POST', '/restore', undefined],
    ] as const)
      expect((await call(method, `/presets/${slug}${path}`, { key: key(), body })).status).toBe(403)
    expect(await call('GET', `/presets/${slug}`)).toEqual(before)
  })

  test('a key of another workspace finds nothing, as if there was nothing', async () => {
    await latchkey.admin('workspaces.create', { name: 'other' })
    const { key } = await latchkey.admin<Row & { key: string }>('keys.create', {
      name: 'other',
      kind: 'management',
      workspace: 'other',
    })
    const slug = await createPreset()
    for (const [method, path, body] of [
      ['GET', ''],
      ['GET', '/versions'],
      ['GET', '/versions/1'],
      ['PATCH', '', { name: 'x' }],
      ['DELETE', ''],
      ['POST', '/restore'],
    ] as [string, string, unknown?][]) {
      const theirs = await call(method, `/presets/${slug}${path}`, { key, body })
      expect(theirs).toEqual({
        status: 404,
        error: { code: 404, message: 'Resource not found', metadata: { error_type: expect.any(String) } },
      })
      expect(theirs).toEqual(await call(method, `/presets/absent${path}`, { key, body }))
    }
    expect(await call('GET', '/presets', { key })).toEqual({ status: 200, data: [], total_count: 0 })
    // The slug is free in theirs.
    const { data } = await call('POST', `/presets/${slug}/chat/completions`, { key, body: chat })
    expect(data.designated_version.version).toBe(1)
  })
})

describe('archiving', () => {
  test('hides a preset and frees no slug; restoring brings it back as it was', async () => {
    const slug = await createPreset()
    const before = await call('GET', `/presets/${slug}`)
    for (const _ of ['once', 'again'])
      expect(await call('DELETE', `/presets/${slug}`)).toMatchObject({ status: 200, data: { status: 'archived' } })
    for (const path of ['', '/versions', '/versions/1'])
      expect((await call('GET', `/presets/${slug}${path}`)).status).toBe(404)
    expect((await call('PATCH', `/presets/${slug}`, { body: { name: 'x' } })).status).toBe(404)
    const listed = (await call('GET', '/presets?limit=100')).data as { slug: string }[]
    expect(listed.map((row) => row.slug)).not.toContain(slug)
    for (const _ of ['once', 'again'])
      expect(await call('POST', `/presets/${slug}/restore`)).toMatchObject({ status: 200, data: { status: 'active' } })
    expect((await call('GET', `/presets/${slug}`)).data.designated_version).toEqual(before.data.designated_version)
  })

  test('and restoring conflict with a disabled preset', async () => {
    const slug = await createPreset()
    expect((await call('PATCH', `/presets/${slug}`, { body: { status: 'disabled' } })).data.status).toBe('disabled')
    expect((await call('DELETE', `/presets/${slug}`)).status).toBe(409)
    expect((await call('POST', `/presets/${slug}/restore`)).status).toBe(409)
    expect((await call('GET', `/presets/${slug}`)).data.status).toBe('disabled')
    await call('PATCH', `/presets/${slug}`, { body: { status: 'active' } })
    expect((await call('DELETE', `/presets/${slug}`)).status).toBe(200)
  })
})

describe('a patch', () => {
  test('renames, describes, disables and rolls back', async () => {
    const slug = await createPreset()
    await call('POST', `/presets/${slug}/chat/completions`, { body: { ...chat, model: 'small' } })
    const { data } = await call('PATCH', `/presets/${slug}`, {
      body: { name: 'Für alle', description: 'Two\nlines', status: 'disabled', designated_version: 1 },
    })
    expect(data).toMatchObject({
      slug,
      name: 'Für alle',
      description: 'Two\nlines',
      status: 'disabled',
      status_updated_at: data.updated_at,
      designated_version: { version: 1, config: { model: 'big' } },
    })
    // The next one follows the latest, not the designated one.
    await call('PATCH', `/presets/${slug}`, { body: { status: 'active', description: null } })
    const { data: next } = await call('POST', `/presets/${slug}/chat/completions`, { body: chat })
    expect(next).toMatchObject({ name: 'Für alle', description: null, designated_version: { version: 3 } })
  })

  test.each([
    ['nothing', {}],
    ['an unknown field', { nmae: 'x' }],
    ['a status of another kind', { status: 'archived' }],
    ['a version that there is not', { designated_version: 2 }],
    ['a version that is no number', { designated_version: '1' }],
    ['an empty name', { name: '' }],
    ['a name that is too long', { name: 'x'.repeat(129) }],
    ['another workspace', { workspace: 'default', name: 'x' }],
  ])('with %s is refused and changes nothing', async (_, body) => {
    const slug = await createPreset()
    const before = await call('GET', `/presets/${slug}`)
    expect((await call('PATCH', `/presets/${slug}`, { body })).status).toBe(400)
    expect(await call('GET', `/presets/${slug}`)).toEqual(before)
  })
})

test.each([
  ['of nothing', undefined, 'Nothing to change: send at least one of description, designated_version, name, status'],
  ['of nothing', {}, 'Nothing to change: send at least one of description, designated_version, name, status'],
  [
    'of an unknown field',
    { nmae: 'x' },
    '"nmae" is not a field of this request: use description, designated_version, name, status',
  ],
])('an update %s says what can be changed', async (_, body, message) => {
  const slug = await createPreset()
  const metadata = { error_type: 'invalid_request' }
  expect((await call('PATCH', `/presets/${slug}`, { body })).error).toEqual({ code: 400, message, metadata })
})

/** Presets updated in the same millisecond are listed by slug. */
async function nextMillisecond() {
  const before = Date.now()
  while (Date.now() === before) await new Promise((resolve) => setImmediate(resolve))
}

describe('a list', () => {
  test('has the most recently updated first, without versions, by pages', async () => {
    const slugs = [await createPreset()]
    for (const _ of ['second', 'third']) {
      await nextMillisecond()
      slugs.push(await createPreset())
    }
    await nextMillisecond()
    await call('PATCH', `/presets/${slugs[0]}`, { body: { name: 'now first' } })
    const { data, total_count } = await call('GET', '/presets?limit=2')
    expect((data as { slug: string }[]).map(({ slug }) => slug)).toEqual([slugs[0] ?? '', slugs[2] ?? ''])
    expect(data[0]).not.toHaveProperty('designated_version')
    const rest = await call('GET', `/presets?offset=2&limit=100`)
    expect(rest.data).toHaveLength(total_count - 2)
    expect(rest.data[0].slug).toBe(slugs[1])
    expect(await call('GET', `/presets?offset=${total_count}`)).toEqual({ status: 200, data: [], total_count })
  })

  test('of long versions is read one by one, and stops when the reader leaves', async () => {
    const slug = await createPreset()
    for (let index = 0; index < 20; index++)
      await call('POST', `/presets/${slug}/chat/completions`, {
        body: { ...chat, stop: [`${index}`.padEnd(200_000, 'x')] },
      })
    const headers = { authorization: `Bearer ${inference}` }
    const response = await fetch(`${latchkey.server.baseUrl}/presets/${slug}/versions`, { headers })
    const reader = response.body?.getReader()
    await reader?.read()
    await reader?.cancel()
    const { data, total_count } = await call('GET', `/presets/${slug}/versions?offset=1`)
    expect(total_count).toBe(21)
    expect((data as { config: { stop: string[] } }[]).map(({ config }) => config.stop[0]?.slice(0, 2))).toEqual(
      Array.from({ length: 20 }, (_, index) => `${index}`.padEnd(2, 'x')),
    )
  })

  test('of versions has the oldest first, by pages', async () => {
    const slug = await createPreset()
    for (const model of ['b', 'c'])
      await call('POST', `/presets/${slug}/chat/completions`, { body: { ...chat, model } })
    const { data, total_count } = await call('GET', `/presets/${slug}/versions?offset=1&limit=1`)
    expect({ total_count, data }).toMatchObject({ total_count: 3, data: [{ version: 2, config: { model: 'b' } }] })
    expect((await call('GET', `/presets/${slug}/versions/2`)).data).toEqual(data[0])
  })

  test.each(['limit=0', 'limit=101', 'limit=x', 'offset=-1', 'offset=1.5', 'limit='])(
    'with %s is refused',
    async (query) => {
      expect((await call('GET', `/presets?${query}`)).status).toBe(400)
      expect((await call('GET', `/presets/${await createPreset()}/versions?${query}`)).status).toBe(400)
    },
  )
})

test.each(['0', '01', '4', '1e0', '-1', 'x', '%00', '99999999999999'])('version %s is not there', async (version) => {
  const slug = await createPreset()
  expect(await call('GET', `/presets/${slug}/versions/${version}`)).toEqual({
    status: 404,
    error: { code: 404, message: 'Resource not found', metadata: { error_type: expect.any(String) } },
  })
})

test('an id is no slug: it finds nothing, and a post to it makes a preset of that name', async () => {
  const slug = await createPreset()
  const { data: known } = await call('GET', `/presets/${slug}`)
  for (const [method, path, body] of [
    ['GET', ''],
    ['GET', '/versions'],
    ['GET', '/versions/1'],
    ['PATCH', '', { name: 'x' }],
    ['DELETE', ''],
  ] as [string, string, unknown?][])
    expect((await call(method, `/presets/${known.id}${path}`, { body })).status).toBe(404)
  expect((await call('GET', `/presets/${slug}`)).data).toEqual(known)
  const { data: made } = await call('POST', `/presets/${known.id}/chat/completions`, { body: chat })
  expect(made).toMatchObject({ slug: known.id, designated_version: { version: 1 } })
})

test('every change is recorded with who made it', async () => {
  const slug = await createPreset()
  await call('PATCH', `/presets/${slug}`, { body: { name: 'x' } })
  const { data } = await latchkey.admin<{ data: Row[] }>('audit.changes', { limit: 2 })
  expect(data).toMatchObject([
    { operation: 'presets.update', kind: 'preset', actor: 'key', before: { name: slug }, after: { name: 'x' } },
    { operation: 'presets.save', kind: 'preset', actor: 'key', before: null, after: { slug, latest_version: 1 } },
  ])
})
