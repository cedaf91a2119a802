// Which presets and models a key may use, which a policy lets its access tokens use, and what of them a token carries
// (RFC 9396 §9.1).
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { decodeJwt } from 'jose'
import { modelNamesMax } from '../../src/limits.ts'
import { audience, postExchange, type Row, subject } from '../support/latchkey.ts'
import { bodyOf, type Fields, inferencePaths, type PresetServer, startPresets } from '../support/presets.ts'

let latchkey: PresetServer
beforeAll(async () => {
  latchkey = await startPresets()
  await latchkey.savePreset({ model: 'big' }, 'prod-chat')
  await latchkey.savePreset({ model: 'small', models: ['big'] }, 'prod-mail')
  await latchkey.savePreset({ model: 'small' }, 'lab')
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

type Bounds = { allowed_presets?: unknown; allowed_models?: unknown }
let made = 0
const createKey = (bounds: Bounds, others: Fields = {}) =>
  latchkey.admin<Row & { key: string }>('keys.create', { name: `key-${made++}`, ...bounds, ...others })
const createPolicy = (bounds: Bounds, key = 'target') =>
  latchkey.admin('policies.create', { name: `policy-${made++}`, issuer: 'idp', key, audience, subject, ...bounds })
async function tokenOf(policy: Row): Promise<string> {
  const fields = { federation_policy_id: policy.id, subject_token: await latchkey.mint() }
  const { access_token } = (await (await postExchange(latchkey.server.baseUrl, fields)).json()) as Row
  return access_token as string
}
async function ask(credential: string, body: unknown, path = '/chat/completions') {
  latchkey.reset()
  const response = await latchkey.infer(path, body, credential)
  const { error } = (await response.json()) as { error?: { message: string } }
  expect(latchkey.upstream.requests).toHaveLength(response.status === 200 ? 1 : 0)
  return { status: response.status, message: error?.message }
}
const question = bodyOf['/chat/completions']
const allowed = { status: 200, message: undefined }
const onlyPresets = (who: string, names: string) => ({
  status: 403,
  message: `This ${who} may only use the presets: ${names}; name one of them`,
})
const onlyModels = (who: string, names: string, other = 'big') => ({
  status: 403,
  message: `This ${who} may only use the models: ${names}; "${other}" is not one of them`,
})

/** A key, or a policy's token, with these bounds. */
const bearers: [who: string, create: (bounds: Bounds) => Promise<string>][] = [
  ['key', async (bounds) => (await createKey(bounds)).key],
  ['access token', async (bounds) => tokenOf(await createPolicy(bounds))],
]
describe.each(bearers)('a %s', (who, create) => {
  test('for some presets may use these, in any version and by any name, and no others', async () => {
    const credential = await create({ allowed_presets: ['prod-*', 'gone'] })
    for (const naming of [
      { model: '@preset/prod-chat' },
      { model: '@preset/prod-chat@1' },
      { preset: 'prod-mail' },
      { model: 'any@preset/prod-mail' },
      { model: 'any', preset: 'prod-mail@1' },
    ])
      expect(await ask(credential, { ...question, ...naming })).toEqual(allowed)
    for (const naming of [
      { model: '@preset/lab' },
      { preset: 'lab' },
      { model: 'big@preset/lab' },
      { preset: 'PROD-chat' },
      // The refusal does not reveal whether the preset exists.
      { preset: 'never-made' },
      // To name none is another.
      { model: 'big' },
      { model: 'big', preset: null },
      {},
    ])
      expect(await ask(credential, { ...question, ...naming })).toEqual(onlyPresets(who, 'prod-*, gone'))
    expect(await ask(credential, { ...question, preset: 'gone' })).toMatchObject({ status: 404 })
  })

  test.each(inferencePaths)('for some presets is held to them on %s', async (path) => {
    const credential = await create({ allowed_presets: ['lab'] })
    expect(await ask(credential, { ...bodyOf[path], preset: 'lab' }, path)).toEqual(allowed)
    for (const naming of [{ model: 'small' }, { preset: 'prod-chat' }])
      expect(await ask(credential, { ...bodyOf[path], ...naming }, path)).toEqual(onlyPresets(who, 'lab'))
  })

  test('for some models may use no other by way of a preset, nor as its fallback', async () => {
    const credential = await create({ allowed_models: ['sm*'] })
    for (const naming of [{ model: 'small' }, { preset: 'lab' }, { model: 'smart@preset/prod-chat' }])
      expect(await ask(credential, { ...question, ...naming })).toEqual(allowed)
    for (const naming of [
      { preset: 'prod-chat' },
      { preset: 'prod-mail' },
      { model: 'big@preset/lab' },
      { preset: 'lab', models: ['big'] },
      { preset: 'lab', fallbacks: ['big'] },
      { preset: 'lab', fallbacks: [{ model: 'small' }, { model: 'big' }] },
      { model: 'small', fallbacks: 'big' },
    ])
      expect(await ask(credential, { ...question, ...naming })).toEqual(onlyModels(who, 'sm*'))
  })

  test('for some models may name no other at any place that an upstream may act on', async () => {
    const credential = await create({ allowed_models: ['sm*'] })
    for (const naming of [
      { Fallbacks: ['big'] },
      { context_window_fallbacks: [{ small: ['big'] }] },
      { content_policy_fallbacks: [{ small: ['big'] }] },
      { tools: [{ type: 'advisor', model: 'big' }] },
      { plugins: [{ id: 'auto-router', allowed_models: ['big'] }] },
    ])
      expect(await ask(credential, { ...question, model: 'small', ...naming })).toEqual(onlyModels(who, 'sm*'))
    const tool = {
      type: 'function',
      function: { name: 'f', parameters: { properties: { model: { type: 'string' } } } },
    }
    expect(await ask(credential, { ...question, model: 'small', tools: [tool] })).toEqual(allowed)
  })

  test('for some models may name no other where a preset puts it', async () => {
    const slug = await latchkey.savePreset({
      model: 'small',
      plugins: [{ id: 'auto-router', allowed_models: ['small', 'big'] }],
    })
    const credential = await create({ allowed_models: ['sm*'] })
    expect(await ask(credential, { ...question, preset: slug })).toEqual(onlyModels(who, 'sm*'))
    expect(await ask(credential, { ...question, preset: slug, plugins: [] })).toEqual(allowed)
  })

  test('for some models has to name one, whatever else it names', async () => {
    const credential = await create({ allowed_models: ['sm*'] })
    const { messages } = question
    for (const naming of [{}, { fallbacks: ['small'] }, { tools: [{ type: 'advisor', model: 'small' }] }])
      expect(await ask(credential, { messages, ...naming })).toEqual({
        status: 403,
        message: `This ${who} may only use the models: sm*; name a model`,
      })
  })

  test('for some models is not talked around with a member within that is there twice', async () => {
    const credential = await create({ allowed_models: ['sm*'] })
    const twice = (text: string) => `{"model":"small","messages":[{"role":"user","content":"hi"}],${text}}`
    for (const text of [
      '"tools":[{"type":"advisor","model":"big","model":"small"}]',
      '"plugins":[{"id":"x","allowed_models":["big"],"allowed_models":["small"]}]',
    ])
      expect(await ask(credential, twice(text))).toMatchObject({ status: 400 })
    const { key } = await createKey({})
    expect(await ask(key, twice('"tools":[{"type":"advisor","model":"big","model":"small"}]'))).toEqual(allowed)
  })

  test('for some models may name so many', async () => {
    const credential = await create({ allowed_models: ['sm*'] })
    const plugins = (count: number) => [{ id: 'auto-router', allowed_models: Array(count).fill('small') }]
    const others = modelNamesMax - 1
    expect(await ask(credential, { ...question, model: 'small', plugins: plugins(others) })).toEqual(allowed)
    expect(await ask(credential, { ...question, model: 'small', plugins: plugins(others + 1) })).toMatchObject({
      status: 400,
    })
  })

  test('for presets and models needs both to allow it', async () => {
    const credential = await create({ allowed_presets: ['lab', 'prod-chat'], allowed_models: ['small'] })
    expect(await ask(credential, { ...question, preset: 'lab' })).toEqual(allowed)
    expect(await ask(credential, { ...question, preset: 'prod-chat', model: 'small' })).toEqual(allowed)
    expect(await ask(credential, { ...question, preset: 'prod-chat' })).toEqual(onlyModels(who, 'small'))
    expect(await ask(credential, { ...question, model: 'small' })).toEqual(onlyPresets(who, 'lab, prod-chat'))
  })

  test('is not talked around with a member that is there twice', async () => {
    const credential = await create({ allowed_presets: ['lab'], allowed_models: ['small'] })
    const messages = '"messages":[{"role":"user","content":"hello"}]'
    for (const text of [
      `{"preset":"lab","preset":"prod-chat",${messages}}`,
      `{"preset":"lab","pre\\u0073et":"prod-chat",${messages}}`,
      `{"preset":"lab","model":"small","model":"big",${messages}}`,
      `{"preset":"lab","models":[],"models":["big"],${messages}}`,
      `{"model":"@preset/lab","model":"small",${messages}}`,
      `{"preset":"lab","Model":"big",${messages}}`,
    ])
      expect((await ask(credential, text)).status).toBe(400)
  })
})

describe('a key and a policy together', () => {
  test('both must allow', async () => {
    const key = await createKey({ allowed_presets: ['prod-*'], allowed_models: ['big'] })
    const token = await tokenOf(await createPolicy({ allowed_presets: ['*chat', 'lab'] }, key.name as string))
    expect(await ask(token, { ...question, preset: 'prod-chat' })).toEqual(allowed)
    expect(await ask(token, { ...question, preset: 'lab' })).toEqual(onlyPresets('key', 'prod-*'))
    expect(await ask(token, { ...question, preset: 'prod-mail' })).toEqual(onlyPresets('access token', '*chat, lab'))
    expect(await ask(token, { ...question, model: 'small@preset/prod-chat' })).toEqual(
      onlyModels('key', 'big', 'small'),
    )
    // No policy limits the key when it is used directly.
    expect(await ask(key.key, { ...question, model: 'big@preset/prod-mail' })).toEqual(allowed)
  })

  test('the key is as it is now, the policy as it was when the token was issued', async () => {
    const key = await createKey({})
    const policy = await createPolicy({ allowed_presets: ['prod-*'] }, key.name as string)
    const token = await tokenOf(policy)
    const inProduction = { ...question, preset: 'prod-chat' }
    const inLab = { ...question, preset: 'lab' }

    await latchkey.admin('policies.update', { policy: policy.id, allowed_presets: ['lab'], allowed_models: ['small'] })
    expect(await ask(token, inProduction)).toEqual(allowed)
    expect(await ask(token, inLab)).toEqual(onlyPresets('access token', 'prod-*'))
    const next = await tokenOf(policy)
    expect(await ask(next, inProduction)).toEqual(onlyPresets('access token', 'lab'))
    expect(await ask(next, inLab)).toEqual(allowed)
    await latchkey.admin('policies.update', { policy: policy.id, allowed_presets: null, allowed_models: null })
    expect(await ask(next, inProduction)).toEqual(onlyPresets('access token', 'lab'))
    expect(await ask(await tokenOf(policy), { ...question, model: 'any' })).toEqual(allowed)

    await latchkey.admin('keys.update', { key: key.id, allowed_presets: ['lab'] })
    expect(await ask(token, inProduction)).toEqual(onlyPresets('key', 'lab'))
    await latchkey.admin('keys.update', { key: key.id, allowed_presets: null })
    expect(await ask(token, inProduction)).toEqual(allowed)
  })
})

describe('an access token carries', () => {
  test.each([
    [{}, undefined],
    [{ allowed_presets: ['a', 'b-*'] }, { presets: ['a', 'b-*'] }],
    [{ allowed_models: ['m'] }, { models: ['m'] }],
    [
      { allowed_models: ['m'], allowed_presets: ['a'] },
      { models: ['m'], presets: ['a'] },
    ],
  ])('its own limits %j, and nothing of the key', async (bounds, details) => {
    const key = await createKey({ allowed_presets: ['of-the-key'] })
    const claims = decodeJwt(await tokenOf(await createPolicy(bounds, key.name as string)))
    expect(claims.authorization_details).toEqual(details && [{ type: 'inference', ...details }])
    expect(claims.scope).toBe('inference')
    expect(JSON.stringify(claims)).not.toContain('of-the-key')
  })

  // The header of a request takes 16 KB. A token is base64 of JSON, where a control character takes six bytes.
  test.each(['x', '界', '\u0001', '"'])('bounds that fit into a header, whatever is in them: %j', async (character) => {
    const patterns = (count: number) => [
      'any',
      ...Array.from({ length: 16 }, (_, index) => `${index}`.padEnd(count, character)),
    ]
    await expect(createPolicy({ allowed_models: patterns(255) })).rejects.toThrow(
      'must take at most 4096 bytes in total',
    )
    const credential = await tokenOf(await createPolicy({ allowed_models: patterns(40) }))
    expect(credential.length).toBeLessThan(8_192)
    expect(await ask(credential, { ...question, model: 'any' })).toEqual(allowed)
  })
})

describe('bounds that nobody could mean are refused, and nothing is saved', () => {
  const rows: [what: string, bounds: Bounds][] = [
    ['no preset', { allowed_presets: [] }],
    ['no model', { allowed_models: [] }],
    ['65 presets', { allowed_presets: Array.from({ length: 65 }, (_, index) => `p${index}`) }],
    ['65 models', { allowed_models: Array.from({ length: 65 }, (_, index) => `m${index}`) }],
    ['a preset by its marker', { allowed_presets: ['@preset/lab'] }],
    ['one version of a preset', { allowed_presets: ['lab@1'] }],
    ['two presets in one text', { allowed_presets: ['lab,prod-chat'] }],
    ['an empty preset', { allowed_presets: [''] }],
    ['a preset of 129 characters', { allowed_presets: ['x'.repeat(129)] }],
    ['a preset that is no text', { allowed_presets: [1] }],
    ['presets that are no list', { allowed_presets: 'lab' }],
    ['a model of 257 characters', { allowed_models: ['x'.repeat(257)] }],
  ]
  test.each(rows)('%s', async (_, bounds) => {
    const { call, admin } = latchkey
    const keys = async () => (await admin<{ data: Row[] }>('keys.list')).data.length
    const before = await keys()
    expect(await call('POST', '/keys', { body: { name: 'bad', ...bounds } })).toMatchObject({
      status: 400,
      error: {
        code: 400,
        message: expect.stringContaining(Object.keys(bounds)[0] ?? ''),
        metadata: { error_type: expect.any(String) },
      },
    })
    expect(await keys()).toBe(before)
    const hash = latchkey.key.hash as string
    expect(await call('PATCH', `/keys/${hash}`, { body: bounds })).toMatchObject({ status: 400 })
    expect((await call('GET', `/keys/${hash}`)).data).toMatchObject({ allowed_presets: null, allowed_models: null })
    await expect(createPolicy(bounds)).rejects.toThrow('allowed_')
    await expect(admin('policies.update', { policy: 'policy', ...bounds })).rejects.toThrow('allowed_')
    expect(await admin('policies.show', { policy: 'policy' })).toMatchObject({
      allowed_presets: null,
      allowed_models: null,
    })
  })

  test.each(['management', 'management_read_only'])('for a %s key, which calls no inference', async (kind) => {
    const { hash } = await createKey({}, { kind })
    for (const bounds of [{ allowed_presets: ['lab'] }, { allowed_models: ['small'] }]) {
      await expect(createKey(bounds, { kind })).rejects.toThrow('A management key cannot call inference')
      expect(await latchkey.call('PATCH', `/keys/${hash}`, { body: bounds })).toMatchObject({
        status: 400,
        error: { message: expect.stringContaining('A management key cannot call inference') },
      })
    }
    expect((await latchkey.call('GET', `/keys/${hash}`)).data).toMatchObject({
      allowed_presets: null,
      allowed_models: null,
    })
  })
})

test('POST /keys and PATCH /keys/{hash} set the bounds, and the very next request obeys', async () => {
  const { call } = latchkey
  const body = { name: 'bounded', allowed_presets: ['lab'], allowed_models: ['small'] }
  const { status, data, key } = await call('POST', '/keys', { body })
  expect({ status, data }).toMatchObject({ status: 201, data: body })
  expect((await call('GET', '/key', { key })).data).toMatchObject(body)
  expect(await ask(key, { ...question, preset: 'prod-chat' })).toEqual(onlyPresets('key', 'lab'))
  const change = async (bounds: Bounds) => (await call('PATCH', `/keys/${data.hash}`, { body: bounds })).data
  expect(await change({ allowed_presets: ['prod-*'] })).toMatchObject({
    allowed_presets: ['prod-*'],
    allowed_models: ['small'],
  })
  expect(await ask(key, { ...question, preset: 'prod-chat' })).toEqual(onlyModels('key', 'small'))
  expect(await change({ allowed_models: null })).toMatchObject({ allowed_presets: ['prod-*'], allowed_models: null })
  expect(await ask(key, { ...question, preset: 'prod-chat' })).toEqual(allowed)
  expect(await change({ allowed_presets: null })).toMatchObject({ allowed_presets: null })
  expect(await ask(key, { ...question, model: 'any' })).toEqual(allowed)
})
