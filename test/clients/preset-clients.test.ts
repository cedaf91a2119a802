// The presets of the official client, @openrouter/sdk: every call decodes what we answer, its pagers end, and its error classes are raised.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { OpenRouter } from '@openrouter/sdk'
import type { PresetDesignatedVersion } from '@openrouter/sdk/models'
import {
  BadRequestResponseError,
  ConflictResponseError,
  ForbiddenResponseError,
  NotFoundResponseError,
  UnauthorizedResponseError,
} from '@openrouter/sdk/models/errors'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { createPreset, failureOf, officialClient, question } from '../support/official-client.ts'

let latchkey: Federation
let management: OpenRouter
let reader: OpenRouter
beforeAll(async () => {
  latchkey = await startFederation()
  const create = async (name: string, kind: string) =>
    (await latchkey.admin<Row & { key: string }>('keys.create', { name, kind })).key
  management = clientWith(await create('admin', 'management'))
  reader = clientWith(latchkey.key.key)
})
afterAll(() => latchkey.stop())

const clientWith = (apiKey?: string) => officialClient(latchkey.server.baseUrl, apiKey)

test('createPresetsChatCompletions makes one, with its settings as the client sends them', async () => {
  const { data } = await management.presets.createPresetsChatCompletions({
    slug: 'from-chat',
    chatRequest: {
      model: 'own',
      models: ['next'],
      maxCompletionTokens: 50,
      serviceTier: 'fast',
      tools: [{ type: 'function', function: { name: 'a', parameters: { type: 'object' } } }],
      provider: { allowFallbacks: true },
      responseFormat: { type: 'json_object' },
      reasoning: { effort: 'low' },
      stream: false,
      messages: [{ role: 'system', content: 'Be brief' }, question],
    },
  })
  expect(data).toEqual({
    id: expect.any(String),
    slug: 'from-chat',
    name: 'from-chat',
    description: null,
    status: 'active',
    statusUpdatedAt: null,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    creatorUserId: expect.any(String),
    workspaceId: expect.any(String),
    designatedVersionId: expect.any(String),
    designatedVersion: {
      id: data.designatedVersionId as string,
      presetId: data.id,
      version: 1,
      systemPrompt: 'Be brief',
      creatorId: data.creatorUserId as string,
      createdAt: data.createdAt,
      updatedAt: data.createdAt,
      config: {
        model: 'own',
        models: ['next'],
        max_completion_tokens: 50,
        service_tier: 'priority',
        tools: [{ type: 'function', function: { name: 'a', parameters: { type: 'object' } } }],
        provider: { allow_fallbacks: true },
        response_format: { type: 'json_object' },
        reasoning: { effort: 'low' },
      },
    },
  })
  expect((await management.presets.get({ slug: 'from-chat' })).data).toEqual(data)
})

test('createPresetsMessages and createPresetsResponses make the next versions', async () => {
  const slug = await createPreset(management)
  const { data: fromMessages } = await management.presets.createPresetsMessages({
    slug,
    messagesRequest: { model: 'claude', maxTokens: 9, system: 'Be kind', messages: [question], stopSequences: ['x'] },
  })
  expect(fromMessages.designatedVersion).toMatchObject({
    version: 2,
    systemPrompt: 'Be kind',
    config: { model: 'claude', max_tokens: 9, stop: ['x'] },
  })
  const { data: fromResponses } = await management.presets.createPresetsResponses({
    slug,
    responsesRequest: { model: 'gpt', maxOutputTokens: 9, instructions: 'Be clear', input: 'hello' },
  })
  expect(fromResponses.designatedVersion).toMatchObject({
    version: 3,
    systemPrompt: 'Be clear',
    config: { model: 'gpt', max_completion_tokens: 9 },
  })
  expect(fromResponses.designatedVersion?.config).not.toHaveProperty('stream')
})

test('list gives every preset once, page by page, to anyone who may infer', async () => {
  const slugs = [await createPreset(management), await createPreset(management), await createPreset(management)]
  const whole = await reader.presets.list({ limit: 100 })
  expect(whole.result.data.length).toBe(whole.result.totalCount)
  const found: string[] = []
  for await (const { result } of await reader.presets.list({ limit: 2 })) {
    expect(result.totalCount).toBe(whole.result.totalCount)
    expect(result.data.length).toBeLessThanOrEqual(2)
    found.push(...result.data.map(({ slug }) => slug))
  }
  expect(found).toEqual(whole.result.data.map(({ slug }) => slug))
  expect(found).toEqual(expect.arrayContaining(slugs))
  expect(new Set(found).size).toBe(found.length)
  expect((await reader.presets.list()).result.data.length).toBe(found.length)
})

test('listVersions gives every version once, oldest first, and getVersion each', async () => {
  const slug = await createPreset(management, { model: 'model-1' })
  for (const version of [2, 3, 4])
    await management.presets.createPresetsChatCompletions({
      slug,
      chatRequest: { model: `model-${version}`, messages: [question] },
    })
  const found: PresetDesignatedVersion[] = []
  for await (const { result } of await reader.presets.listVersions({ slug, limit: 2 }))
    found.push(...result.data.filter((version) => version !== null))
  expect(found.map(({ version, config }) => [version, config.model])).toEqual(
    [1, 2, 3, 4].map((version) => [version, `model-${version}`]),
  )
  for (const version of found) {
    const { data } = await reader.presets.getVersion({ slug, version: String(version.version) })
    expect(data).toEqual(version)
  }
  expect(found.map(({ systemPrompt }) => systemPrompt)).toEqual(['Be brief', null, null, null])
})

describe('throws', () => {
  const chatRequest = { model: 'm', messages: [question] }
  type Kind = abstract new (...given: never[]) => Error
  const rows: [Kind, what: string, call: () => PromiseLike<unknown>, code: number, message: RegExp][] = [
    [
      BadRequestResponseError,
      'a wrong slug',
      () => management.presets.createPresetsChatCompletions({ slug: 'a b', chatRequest }),
      400,
      /is not a valid slug/,
    ],
    [
      BadRequestResponseError,
      'a wrong setting',
      () =>
        management.presets.createPresetsChatCompletions({
          slug: 'a',
          chatRequest: { ...chatRequest, temperature: 3 },
        }),
      400,
      /^temperature: /,
    ],
    [BadRequestResponseError, 'a wrong page', () => reader.presets.list({ limit: 101 }), 400, /limit/],
    [
      UnauthorizedResponseError,
      'no credential',
      () => clientWith().presets.list(),
      401,
      /^Missing Authentication header$/,
    ],
    [
      UnauthorizedResponseError,
      'a wrong credential',
      () => clientWith('nonsense').presets.createPresetsMessages({ slug: 'a', messagesRequest: chatRequest }),
      401,
      /^Invalid credentials/,
    ],
    [
      ForbiddenResponseError,
      'an inference key that makes one',
      () => reader.presets.createPresetsResponses({ slug: 'a', responsesRequest: { input: 'x' } }),
      403,
      /^Only management keys can perform this operation$/,
    ],
    [
      NotFoundResponseError,
      'no such preset',
      () => reader.presets.get({ slug: 'nobody-made-it' }),
      404,
      /^Resource not found$/,
    ],
    [
      NotFoundResponseError,
      'no such version',
      () => reader.presets.getVersion({ slug: 'from-chat', version: '9' }),
      404,
      /^Resource not found$/,
    ],
    [
      NotFoundResponseError,
      'versions of no preset',
      () => reader.presets.listVersions({ slug: 'nobody-made-it' }),
      404,
      /^Resource not found$/,
    ],
  ]
  test.each(rows)('%p for %s', async (kind, _, call, code, message) => {
    const failure = await failureOf(call())
    expect(failure).toBeInstanceOf(kind)
    expect(failure).toMatchObject({ statusCode: code, error: { code, message: expect.stringMatching(message) } })
  })

  test('ConflictResponseError for an archived preset', async () => {
    const slug = await createPreset(management)
    await latchkey.admin('presets.archive', { preset: slug })
    for (const call of [
      () => management.presets.createPresetsChatCompletions({ slug, chatRequest }),
      () => management.presets.createPresetsMessages({ slug, messagesRequest: chatRequest }),
      () => management.presets.createPresetsResponses({ slug, responsesRequest: { input: 'x' } }),
    ]) {
      const failure = await failureOf(call())
      expect(failure).toBeInstanceOf(ConflictResponseError)
      expect(failure).toMatchObject({ error: { code: 409, message: expect.stringMatching(/archived/) } })
    }
  })
})
