// A preset in use (reference: Using a preset): how a request names it, who finds it, and that the next request obeys every change. The upstream
// is a scripted one, so that what is compared is the body that it gets.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { answer } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'
import {
  bodyOf,
  type Fields,
  type InferencePath,
  inferencePaths,
  type PresetServer,
  startPresets,
} from '../support/presets.ts'

let latchkey: PresetServer
let slug: string
beforeAll(async () => {
  latchkey = await startPresets()
  const system = { role: 'system', content: 'Be brief' }
  slug = await latchkey.savePreset({ model: 'own', temperature: 0.2, max_tokens: 50, messages: [system] })
  await latchkey.savePreset({ model: 'second', seed: 2 }, slug)
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

const ask = (naming: Fields, path: InferencePath = '/chat/completions', credential?: string) =>
  latchkey.infer(path, { ...bodyOf[path], ...naming }, credential)
const presetVersionsOf = async (response: Response) =>
  (await latchkey.usageOf(response)).map((row) => row.preset_version)
/** The message for a refused preset, without its name. */
async function refusalOf(response: Response, name: string) {
  const { error } = (await response.json()) as { error: { message: string } }
  expect(latchkey.upstream.requests).toEqual([])
  expect(await latchkey.usageOf(response)).toEqual([])
  return { status: response.status, message: error.message.replaceAll(name, 'NAME') }
}

describe('a preset is applied', () => {
  const ways: [way: string, naming: (name: string) => Fields, model: string][] = [
    ['as the model', (name) => ({ model: `@preset/${name}` }), 'own'],
    ['beside no model', (name) => ({ preset: name }), 'own'],
    ['beside a null model', (name) => ({ model: null, preset: name }), 'own'],
    ['beside a model', (name) => ({ model: 'vendor/theirs', preset: name }), 'vendor/theirs'],
    ['behind a model', (name) => ({ model: `vendor/theirs@preset/${name}` }), 'vendor/theirs'],
    ['twice the same', (name) => ({ model: `@preset/${name}`, preset: name }), 'own'],
    ['with a null preset', (name) => ({ model: `@preset/${name}`, preset: null }), 'own'],
  ]
  const filledIn: Record<InferencePath, Fields> = {
    '/chat/completions': {
      temperature: 0.2,
      max_tokens: 50,
      messages: [{ role: 'system', content: 'Be brief' }, ...bodyOf['/chat/completions'].messages],
    },
    '/completions': { temperature: 0.2, max_tokens: 50 },
    '/responses': { temperature: 0.2, max_output_tokens: 50, instructions: 'Be brief' },
    '/messages': { temperature: 0.2, max_tokens: 50, system: 'Be brief' },
    '/embeddings': {},
    '/rerank': {},
  }
  for (const path of inferencePaths)
    for (const [way, naming, model] of ways)
      test(`to ${path} when named ${way}`, async () => {
        const response = await ask(naming(`${slug}@1`), path)
        expect(response.status).toBe(200)
        expect(await response.json()).toEqual(answer)
        expect(latchkey.sent()).toEqual([{ ...bodyOf[path], ...filledIn[path], model }])
        expect(latchkey.upstream.requests[0]).toMatchObject({ method: 'POST', path: `/v1${path}` })
        expect(latchkey.upstream.requests[0]?.body).not.toContain('preset')
        expect(await latchkey.usageOf(response)).toMatchObject([
          { endpoint: path, model_asked: model, preset_version: `${slug}@1`, status: 200, total_tokens: 7 },
        ])
      })

  test('with the longest names of models, counted in code points', async () => {
    const model = '😀'.repeat(256)
    const fallback = `${'😀'.repeat(255)}x`
    const named = await latchkey.savePreset({ model, models: [fallback] })
    latchkey.reset()
    expect((await ask({ preset: named })).status).toBe(200)
    expect(latchkey.sent()).toMatchObject([{ model }])
    latchkey.reset()
    const longer = await ask({ preset: named, model: `${model}x` })
    expect(longer.status).toBe(400)
    expect(await longer.text()).toContain('A model has at most 256 characters')
    const broken = await ask({ preset: named, model: 'one\ntwo' })
    expect([broken.status, await broken.text()]).toEqual([400, expect.stringContaining('without line breaks')])
    await expect(latchkey.savePreset({ model: `${model}x` })).rejects.toThrow('model: must be at most 256 characters')
  })

  test('in its designated version where none is pinned', async () => {
    const response = await ask({ model: `@preset/${slug}` })
    expect(latchkey.sent()).toEqual([{ ...bodyOf['/chat/completions'], model: 'second', seed: 2 }])
    expect(await presetVersionsOf(response)).toEqual([`${slug}@2`])
  })

  test('for a workload with an access token, and the ledger names both', async () => {
    const response = await ask({ preset: slug }, '/responses', latchkey.accessToken)
    expect(response.status).toBe(200)
    expect(latchkey.sent()).toEqual([{ ...bodyOf['/responses'], model: 'second' }])
    expect(await latchkey.usageOf(response)).toMatchObject([
      { preset_version: `${slug}@2`, policy_id: latchkey.policy.id, subject: 'workload-1' },
    ])
  })

  test('and is in the ledger when the upstream fails, too', async () => {
    latchkey.upstream.answer.current = () => Response.json({ error: 'no' }, { status: 500 })
    const response = await ask({ preset: slug })
    expect(response.status).toBe(500)
    expect(await latchkey.usageOf(response)).toMatchObject([{ status: 500, preset_version: `${slug}@2` }])
  })
})

describe('without a preset', () => {
  const texts = [
    '{ "model":"m",\n "seed": 12345678901234567890, "temperature": 1.0, "messages":[{"role":"user","content":"\\u00e9@preset/x"}] }',
    '{"model":"m","preset_id":"x"}',
    '{}',
  ]
  for (const path of inferencePaths)
    test(`a body to ${path} passes byte for byte`, async () => {
      for (const text of texts) {
        const response = await latchkey.infer(path, text)
        expect(response.status).toBe(200)
        expect(latchkey.upstream.requests.at(-1)?.body).toBe(text)
        expect(await presetVersionsOf(response)).toEqual([null])
      }
    })

  test('what a preset completes keeps the numbers of what the caller wrote', async () => {
    const slug = await latchkey.savePreset({ model: 'big', temperature: 0.5 })
    const tools = '[{"type":"function","function":{"name":"f","parameters":{"maximum":9223372036854775807}}}]'
    const text = `{"seed": 12345678901234567890, "tools":${tools}, "top_p":1.0, "preset":"${slug}", "messages":[ ]}`
    expect((await latchkey.infer('/chat/completions', text)).status).toBe(200)
    const sent = latchkey.upstream.requests.at(-1)?.body
    for (const kept of ['"seed": 12345678901234567890', `"tools":${tools}`, '"top_p":1.0', '"messages":[ ]'])
      expect(sent).toContain(kept)
    expect(JSON.parse(sent ?? '')).toMatchObject({ model: 'big', temperature: 0.5 })
    expect(sent).not.toContain('preset')
  })

  test('a null that names none does not reach the upstream', async () => {
    const response = await ask({ model: 'm', preset: null })
    expect(response.status).toBe(200)
    expect(latchkey.sent()).toEqual([{ ...bodyOf['/chat/completions'], model: 'm' }])
    expect(await presetVersionsOf(response)).toEqual([null])
  })
})

describe('not found and naming it', () => {
  let absent: Record<string, string>
  beforeAll(async () => {
    const { admin, savePreset, call } = latchkey
    const disabled = await savePreset({ model: 'm' })
    await call('PATCH', `/presets/${disabled}`, { body: { status: 'disabled' } })
    const archived = await savePreset({ model: 'm' })
    await call('DELETE', `/presets/${archived}`)
    await admin('workspaces.create', { name: 'other' })
    const { key } = await admin<Row & { key: string }>('keys.create', {
      name: 'other',
      kind: 'management',
      workspace: 'other',
    })
    const body = { model: 'm', messages: [{ role: 'user', content: 'x' }] }
    expect(await call('POST', '/presets/theirs/chat/completions', { key, body })).toMatchObject({ status: 200 })
    absent = {
      unknown: 'nobody-made-it',
      disabled,
      archived,
      "another workspace's": 'theirs',
      'of another case': slug.toUpperCase(),
    }
  })

  test.each(['unknown', 'disabled', 'archived', "another workspace's", 'of another case'])(
    'is a preset that is %s, in the same words',
    async (kind) => {
      const name = absent[kind] ?? ''
      for (const naming of [
        { model: `@preset/${name}` },
        { model: 'm', preset: name },
        { model: `m@preset/${name}@1` },
      ])
        for (const credential of [latchkey.key.key, latchkey.accessToken])
          expect(await refusalOf(await ask(naming, '/chat/completions', credential), name)).toEqual({
            status: 404,
            message: 'The preset "NAME" does not exist or is not active: use one of GET /presets',
          })
    },
  )

  test.each(['3', '999999999'])('is version %s of a preset that has two', async (version) => {
    for (const naming of [{ preset: `${slug}@${version}` }, { model: `m@preset/${slug}@${version}` }])
      expect(await refusalOf(await ask(naming), slug)).toEqual({
        status: 404,
        message: `The preset "NAME" has no version ${version}: use one of GET /presets/NAME/versions`,
      })
  })

  test('has the shape of each path', async () => {
    const message = 'The preset "x" does not exist or is not active: use one of GET /presets'
    const error = { code: 404, message, metadata: { error_type: 'not_found' } }
    for (const path of inferencePaths) {
      const told = await (await ask({ preset: 'x' }, path)).json()
      expect(told).toEqual(
        path === '/messages' ? { type: 'error', error: { type: 'not_found_error', ...error } } : { error },
      )
    }
  })
})

describe('a wrong request', () => {
  const form =
    'is not a preset reference: use "@preset/slug" or "vendor/model@preset/slug", with "@3" at the end for version 3'
  const rows: [what: string, naming: Fields, message: string][] = [
    [
      'names two presets',
      { model: '@preset/a', preset: 'b' },
      'model names the preset "a" and preset names "b": name only one preset',
    ],
    [
      'names two versions',
      { model: '@preset/a@1', preset: 'a' },
      'model names the preset "a@1" and preset names "a": name only one preset',
    ],
    ['names no slug', { model: '@preset/' }, `model ${form}`],
    ['names version 0', { model: '@preset/a@0' }, `model ${form}`],
    ['names a preset of a preset', { model: '@preset/a@preset/b' }, `model ${form}`],
    [
      'gives a preset that is no text',
      { preset: { slug: 'a' } },
      'preset is not a preset reference: use "slug", with "@3" at the end for version 3',
    ],
    [
      'gives an empty preset',
      { preset: '' },
      'preset is not a preset reference: use "slug", with "@3" at the end for version 3',
    ],
    [
      'lists a preset among the fallbacks',
      { models: ['@preset/a'] },
      'models cannot name a preset: use model or preset',
    ],
  ]
  test.each(rows)('%s and is refused', async (_, naming, message) => {
    expect(await refusalOf(await ask(naming), '\n')).toEqual({ status: 400, message })
  })

  test('names a preset that has no model, and none itself', async () => {
    const modelless = await latchkey.savePreset({ temperature: 1 })
    expect(await refusalOf(await ask({ preset: modelless }), modelless)).toEqual({
      status: 400,
      message: 'The preset has no model: name one, as in "vendor/model@preset/slug"',
    })
    expect((await ask({ model: `m@preset/${modelless}` })).status).toBe(200)
    expect(latchkey.sent()).toEqual([{ ...bodyOf['/chat/completions'], model: 'm', temperature: 1 }])
  })
})

test('the very next request obeys a new version, a roll-back, disabling, archiving and restoring', async () => {
  const own = await latchkey.savePreset({ model: 'one' })
  const change = (body: Fields) => latchkey.call('PATCH', `/presets/${own}`, { body })
  const steps: [change: () => Promise<unknown>, model: string | undefined, version?: number][] = [
    [async () => {}, 'one', 1],
    [() => latchkey.savePreset({ model: 'two' }, own), 'two', 2],
    [() => change({ designated_version: 1 }), 'one', 1],
    [() => latchkey.savePreset({ model: 'three' }, own), 'three', 3],
    [() => change({ designated_version: 2 }), 'two', 2],
    [() => change({ status: 'disabled' }), undefined],
    [() => change({ status: 'active' }), 'two', 2],
    [() => latchkey.call('DELETE', `/presets/${own}`), undefined],
    [() => latchkey.call('POST', `/presets/${own}/restore`), 'two', 2],
  ]
  for (const [make, model, version] of steps) {
    latchkey.reset()
    await make()
    const response = await ask({ model: `@preset/${own}` })
    expect(response.status).toBe(model === undefined ? 404 : 200)
    expect(latchkey.sent().map((body) => body.model)).toEqual(model === undefined ? [] : [model])
    expect(await presetVersionsOf(response)).toEqual(model === undefined ? [] : [`${own}@${version}`])
  }
  // A pinned version follows none of these changes.
  const pinned = await ask({ model: `@preset/${own}@3` })
  expect(await presetVersionsOf(pinned)).toEqual([`${own}@3`])
})
