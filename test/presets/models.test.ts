// `GET /models` and `GET /models/{model}` with presets (reference: Model list): who sees which presets, and which responses are the upstream's.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { audience, postExchange, type Row, subject } from '../support/latchkey.ts'
import { type PresetServer, startPresets } from '../support/presets.ts'

let latchkey: PresetServer
beforeAll(async () => {
  latchkey = await startPresets()
})
/** Not as we would write it. */
const listed =
  '{ "data": [ {"id":"big", "size": 12345678901234567890}, {"id":"small"} ],\n "object":"list", "own":1.0 }'
beforeEach(() => {
  latchkey.reset()
  latchkey.upstream.answer.current = () =>
    new Response(listed, { headers: { 'content-type': 'application/json', 'openai-version': 'own' } })
})
afterAll(() => latchkey.stop())

let made = 0
const createKey = async (fields: object) =>
  (await latchkey.admin<Row & { key: string }>('keys.create', { name: `key-${made++}`, ...fields })).key
async function createToken(bounds: object, key = 'target') {
  const named = { name: `policy-${made++}`, issuer: 'idp', key, audience, subject }
  const { id } = await latchkey.admin('policies.create', { ...named, ...bounds })
  const fields = { federation_policy_id: id, subject_token: await latchkey.mint() }
  const { access_token } = (await (await postExchange(latchkey.server.baseUrl, fields)).json()) as Row
  return access_token as string
}
const get = (path: string, credential = latchkey.key.key) =>
  fetch(latchkey.server.baseUrl + path, { headers: { authorization: `Bearer ${credential}` } })
const idsFor = async (credential?: string) =>
  ((await (await get('/models', credential)).json()) as { data: Row[] }).data.map(({ id }) => id)

test('without a preset, the answer of an only upstream passes byte for byte', async () => {
  const gone = await latchkey.savePreset({ model: 'big' })
  await latchkey.call('DELETE', `/presets/${gone}`)
  const off = await latchkey.savePreset({ model: 'big' })
  await latchkey.call('PATCH', `/presets/${off}`, { body: { status: 'disabled' } })
  const response = await get('/models')
  expect(await response.text()).toBe(listed)
  expect(response.headers.get('openai-version')).toBe('own')
  latchkey.reset()
  latchkey.upstream.answer.current = () => Response.json({ error: 'own' }, { status: 418 })
  const refused = await get('/models')
  expect({ status: refused.status, body: await refused.text() }).toEqual({ status: 418, body: '{"error":"own"}' })
})

describe('with presets', () => {
  beforeAll(async () => {
    for (const slug of ['prod-chat', 'prod-mail', 'lab', 'off', 'gone'])
      await latchkey.savePreset({ model: 'big' }, slug)
    await latchkey.call('PATCH', '/presets/lab', { body: { name: 'For trials', description: 'Two\nlines' } })
    await latchkey.call('PATCH', '/presets/off', { body: { status: 'disabled' } })
    await latchkey.call('DELETE', '/presets/gone')
    await latchkey.admin('workspaces.create', { name: 'other' })
    const key = await createKey({ kind: 'management', workspace: 'other' })
    const body = { model: 'big', messages: [{ role: 'user', content: 'x' }] }
    await latchkey.call('POST', '/presets/theirs/chat/completions', { key, body })
  })
  const inUse = ['@preset/lab', '@preset/prod-chat', '@preset/prod-mail']

  test('active ones are listed with the models, and described as presets', async () => {
    const before = Math.floor(Date.now() / 1_000) - 60
    for (const credential of [latchkey.key.key, latchkey.accessToken]) {
      const { object, data } = (await (await get('/models', credential)).json()) as { object: string; data: Row[] }
      expect(object).toBe('list')
      expect(data.slice(0, 2).map(({ id }) => id)).toEqual(['big', 'small'])
      expect(
        data
          .map(({ id }) => id)
          .slice(2)
          .toSorted(),
      ).toEqual(inUse)
      expect(data.find(({ id }) => id === '@preset/lab')).toEqual({
        id: '@preset/lab',
        object: 'model',
        created: expect.any(Number),
        owned_by: 'preset',
        name: 'For trials',
        description: 'Two\nlines',
      })
      expect(data.at(-1)?.created).toBeWithin(before, before + 120)
    }
  })

  test('another workspace has its own', async () => {
    expect(await idsFor(await createKey({ workspace: 'other' }))).toEqual(['big', 'small', '@preset/theirs'])
  })

  test('the next list obeys a change', async () => {
    await latchkey.call('PATCH', '/presets/lab', { body: { status: 'disabled' } })
    expect(await idsFor()).not.toContain('@preset/lab')
    await latchkey.call('PATCH', '/presets/lab', { body: { status: 'active' } })
    expect(await idsFor()).toContain('@preset/lab')
  })

  const bearers: [who: string, create: (bounds: object) => Promise<string>][] = [
    ['key', createKey],
    ['access token', createToken],
  ]
  for (const [who, create] of bearers) {
    test(`a ${who} for some models is shown these, and the presets that name no other`, async () => {
      const slugs = [
        await latchkey.savePreset({ model: 'small', models: ['small'] }),
        await latchkey.savePreset({ temperature: 1 }),
      ]
      const credential = await create({ allowed_models: ['small'] })
      expect((await idsFor(credential)).toSorted()).toEqual(
        [...slugs.map((slug) => `@preset/${slug}`), 'small'].toSorted(),
      )
      for (const slug of slugs) await latchkey.call('DELETE', `/presets/${slug}`)
    })

    test(`a ${who} for some models is not shown a preset with one other among its fallbacks`, async () => {
      const credential = await create({ allowed_models: ['small', 'mid*'] })
      for (const [models, isShown] of [
        [['small', 'middle'], true],
        [['big'], false],
        [['small', 'big'], false],
        [['big', 'small'], false],
        [['small', 'middle', 'big', 'small'], false],
      ] as const) {
        const slug = await latchkey.savePreset({ model: 'small', models })
        expect((await idsFor(credential)).includes(`@preset/${slug}`)).toBe(isShown)
        expect((await get(`/models/@preset/${slug}`, credential)).status).toBe(isShown ? 200 : 404)
        await latchkey.call('DELETE', `/presets/${slug}`)
      }
    })

    test(`a ${who} for some models gets no other by its name`, async () => {
      const credential = await create({ allowed_models: ['small', 'mid*'] })
      for (const [model, status] of [
        ['small', 200],
        ['middle', 404],
        ['big', 403],
        ['smaller', 403],
        ['small/x', 403],
      ] as const)
        expect((await get(`/models/${model}`, credential)).status).toBe(status)
    })

    test(`a ${who} for some presets is shown these alone`, async () => {
      const credential = await create({ allowed_presets: ['prod-*', 'gone'] })
      expect((await idsFor(credential)).toSorted()).toEqual(['@preset/prod-chat', '@preset/prod-mail'])
      expect((await get('/models/@preset/prod-chat', credential)).status).toBe(200)
      expect((await get('/models/@preset/lab', credential)).status).toBe(404)
      expect((await get('/models/big', credential)).status).toBe(403)
    })
  }

  test('a key and a policy show what both allow', async () => {
    const { name } = await latchkey.admin('keys.create', { name: 'both', allowed_presets: ['prod-*'] })
    const credential = await createToken({ allowed_presets: ['*chat', 'lab'] }, name as string)
    expect(await idsFor(credential)).toEqual(['@preset/prod-chat'])
  })

  test.each(['@preset/lab', '%40preset%2Flab', '%40preset/lab'])('%s is shown as it is listed', async (path) => {
    latchkey.upstream.requests.length = 0
    const response = await get(`/models/${path}`)
    const { data } = (await (await get('/models')).json()) as { data: Row[] }
    expect({ status: response.status, body: await response.json() }).toEqual({
      status: 200,
      body: data.find(({ id }) => id === '@preset/lab'),
    })
    expect(latchkey.upstream.requests.map(({ path }) => path)).toEqual(['/v1/models'])
  })

  test.each([
    ['absent', '@preset/nobody-made-it'],
    ['disabled', '@preset/off'],
    ['archived', '@preset/gone'],
    ["another workspace's", '@preset/theirs'],
    ['without a slug', '@preset/'],
    ['one of its versions', '@preset/lab@1'],
    ['behind a model', 'big@preset/lab'],
  ])('%s is not there, and no upstream is asked', async (_, path) => {
    const response = await get(`/models/${path}`)
    expect({ status: response.status, body: await response.json() }).toEqual({
      status: 404,
      body: {
        error: {
          code: 404,
          message: expect.stringContaining('Resource not found'),
          metadata: { error_type: expect.any(String) },
        },
      },
    })
    expect(latchkey.upstream.requests).toEqual([])
  })

  test('a model is still shown as the upstream lists it', async () => {
    expect(await (await get('/models/small')).json()).toEqual({ id: 'small' })
  })

  test('no version is read for it, however the reader is limited', async () => {
    const { presets } = latchkey.server.context
    const { versionOf } = presets
    presets.versionOf = () => Promise.reject(new Error('a version was read'))
    const credential = await createKey({ allowed_models: ['small', 'big'] })
    for (const path of ['/models', '/models/small', '/models/@preset/lab', '/models/@preset/nobody-made-it'])
      expect([200, 404]).toContain((await get(path, credential)).status)
    presets.versionOf = versionOf
  })

  test('a management key is refused', async () => {
    for (const path of ['/models', '/models/@preset/lab'])
      expect((await get(path, latchkey.management)).status).toBe(403)
  })
})
