// Where a body names models that an upstream may act on, in whatever spelling, and where the same words are what the
// caller talks about.
import { describe, expect, spyOn, test } from 'bun:test'
import { hasMemberTwice, parseJsonObject } from '../../src/http/body.ts'
import { findModelNames } from '../../src/inference/model-names.ts'
import { modelCharactersMax, modelNamesMax } from '../../src/limits.ts'
import { giveWay } from '../../src/scheduling/give-way.ts'

describe('a model is named', () => {
  const rows: [fields: Record<string, unknown>, names: string[]][] = [
    [{ model: 'a', models: ['b', 'c'] }, ['a', 'b', 'c']],
    [{ Fallbacks: ['a'] }, ['a']],
    [{ FALLBACKS: 'a' }, ['a']],
    [{ fallback: { model: 'a' } }, ['a']],
    [{ fallbacks: [{ model: 'a', max_tokens: 5 }, { model: 'b' }] }, ['a', 'b']],
    // What holds for one model alone is held against the bound too.
    [{ fallbacks: [{ model: 'a', thinking: { type: 'enabled' } }] }, ['a', 'enabled']],
    [{ context_window_fallbacks: [{ a: ['b', { model: 'c' }] }] }, ['a', 'b', 'c']],
    [{ content_policy_fallbacks: { a: 'b' } }, ['a', 'b']],
    [{ fallbacks: [{ a: true }] }, ['a']],
    [{ 'default-fallbacks': ['a'] }, ['a']],
    [{ 'fall back s': ['a'] }, ['a']],
    [{ modelId: 'a', Model_Name: 'b', 'base.model': 'c', AImodel: 'd' }, ['a', 'b', 'c', 'd']],
    [{ ｍｏｄｅｌ: 'a', 'fallbac\u212A': 'b', 'mo\u200Bdel': 'c', 'mode\u0301l': 'd' }, ['a', 'b', 'c', 'd']],
    [{ [`${'x'.repeat(200)}`]: 'a' }, ['a']],
    [{ litellm_params: { model: 'a' } }, ['a']],
    [{ x: [[{ y: { z: [{ model: 'a' }] } }]] }, ['a']],
    [{ tools: [{ type: 'advisor', model: 'a' }] }, ['a']],
    [{ tools: [{ type: 'openrouter:advisor', parameters: { model: 'a' } }] }, ['a']],
    [{ tools: [{ type: 'openrouter:fusion', parameters: { analysis_models: ['a'] } }] }, ['a']],
    [{ tools: [{ type: 'x', parameters: { tools: [{ type: 'y', parameters: { model: 'a' } }] } }] }, ['a']],
    [{ tools: [{ parameters: { model: 'a' } }] }, ['a']],
    [{ tools: [{ type: 'function', function: { name: 'f', model: 'a' }, model: 'b' }] }, ['a', 'b']],
    [{ tools: { type: 'advisor', model: 'a' } }, ['a']],
    [{ plugins: [{ id: 'auto-router', allowed_models: ['a/*'], excluded_models: ['b'] }] }, ['a/*', 'b']],
    [{ plugins: [{ id: 'fusion', model: 'a', tools: [{ type: 'x', parameters: { model: 'b' } }] }] }, ['a', 'b']],
    [{ messages: [{ role: 'assistant', content: 'x', model: 'a' }] }, ['a']],
    [{ messages: [{ role: 'system', configuration_update: { model: 'a' } }] }, ['a']],
    [{ messages: { model: 'a' } }, ['a']],
    [{ input: [{ type: 'compaction', model: 'a' }] }, ['a']],
    [{ response_format: { model: 'a' } }, ['a']],
    [{ content: { model: 'a' }, schema: { model: 'b' }, parameters: { model: 'c' } }, ['a', 'b', 'c']],
    [{ x: { metadata: { model: 'a' }, messages: [{ content: { model: 'b' } }] } }, ['a', 'b']],
    [{ Metadata: { model: 'a' } }, ['a']],
    [{ [`é${'x'.repeat(64)}`]: 'a' }, ['a']],
    [{ 𝗆𝗈𝖽𝖾𝗅: 'a', '🅜🅞🅓🅔🅛': 'b', 'ⓜⓞⓓⓔⓛ': 'c' }, ['a', 'c']],
    [{ tools: [{ type: 'openrouter:advisor', function: { parameters: { model: 'a' } } }] }, ['a']],
    [{ deployment_id: 'a', deployment: 'b', prompt_id: 'c', engine: 'd' }, ['a', 'b', 'c', 'd']],
    [{ adapter_id: 'a', adapter: 'b', adapters: ['c', { id: 'd' }], merged_adapters: { ids: ['e'] } }, [...'abcde']],
    [{ lora_path: ['a', null], lora: [{ id: 0 }], lora_request: { lora_name: 'b', lora_path: 'c' } }, ['a', 'b', 'c']],
    [{ 'Adapter-Id': 'a', loraPath: 'b', ＥＮＧＩＮＥ: 'c' }, ['a', 'b', 'c']],
    [{ extra_body: { adapter_id: 'a', x: [{ engine: 'b' }] } }, ['a', 'b']],
  ]
  test.each(rows)('by %j', async (fields, names) => expect(await findModelNames(fields)).toEqual(names))
})

const schema = {
  type: 'object',
  properties: { model: { type: 'string', description: 'Which' }, fallback: { enum: ['x'] } },
}

describe('no model is named', () => {
  const rows: [fields: Record<string, unknown>][] = [
    [{ model: 5, models: null, fallbacks: true, provider: { allow_fallbacks: false }, x: { fallbacks: [] } }],
    [{ provider: { order: ['a'], sort: { partition: 'model' } }, route: 'fallback', modalities: ['text'] }],
    [{ messages: [{ role: 'user', content: [{ type: 'text', model: 'a', fallback: { model: 'a' } }] }] }],
    [{ messages: [{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: { model: 'a' } } }] }] }],
    [
      {
        input: [
          { type: 'message', content: [{ model: 'a' }] },
          { type: 'function_call_output', output: { model: 'a' } },
        ],
      },
    ],
    [{ input: [{ type: 'file_search_call', results: [{ attributes: { model: 'a' } }] }] }],
    [{ prompt: { id: 'p', variables: { model: 'a' } } }],
    [{ documents: [{ text: 'x', model: 'a' }], query: 'model' }],
    [{ metadata: { model: 'a' }, trace: { model_version: 'a' } }],
    [{ tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] }],
    [{ tools: [{ type: 'function', name: 'f', parameters: schema }] }],
    [{ tools: [{ function: { name: 'f', parameters: schema } }] }],
    [{ tools: [{ type: 'openrouter:web_search', engine: 'exa', parameters: { engine: 'exa' } }] }],
    [{ plugins: [{ id: 'file-parser', pdf: { engine: 'native' } }] }],
    [{ messages: [{ role: 'user', name: 'x', engine: 'a' }], chat_template_kwargs: { adapter: 'a' } }],
    [{ documents: [{ engine: 'a' }], metadata: { deployment: 'a' }, x: { metadata: { deployment: 'a' } } }],
    [{ engines: 'a', lora_scale: 'a', prompt: 'a', mo界del: 'a' }],
    [{ tools: [{ name: 'f', input_schema: schema, input_examples: [{ model: 'a' }] }] }],
    [{ tools: [{ type: 'namespace', tools: [{ type: 'function', name: 'f', parameters: schema }] }] }],
    [{ functions: [{ name: 'f', parameters: schema }] }],
    [{ response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } }],
    [{ response_format: { type: 'json_object', schema } }],
    [{ text: { format: { type: 'json_schema', schema } } }],
    [{ output_config: { format: { type: 'json_schema', schema } } }],
    [{ guided_json: schema, structured_outputs: { json: schema }, json_schema: schema }],
  ]
  test.each(rows)('by %j', async (fields) => expect(await findModelNames(fields)).toEqual([]))
})

test('one more name than the bound is refused, however they repeat', async () => {
  const naming = (count: number) => ({ x: [{ models: Array(count - 1).fill('a') }, { model: 'a' }] })
  expect(await findModelNames(naming(modelNamesMax))).toEqual(['a'])
  await expect(findModelNames(naming(modelNamesMax + 1))).rejects.toThrow(`at most ${modelNamesMax}`)
})

test('a text that is too long for a name is refused, under whatever member', async () => {
  const long = '界'.repeat(modelCharactersMax)
  expect(await findModelNames({ x: { fallback_reason: long } })).toEqual([long])
  await expect(findModelNames({ x: { fallback_reason: `${long}x` } })).rejects.toThrow('characters')
})

describe('a large body', () => {
  const characters = '\uFDFA'.repeat(60)
  const bodies: [name: string, fields: Record<string, unknown>][] = [
    ['objects', { x: Array.from({ length: 100_000 }, () => ({ aé: {} })) }],
    ['members', { x: Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, 1])) }],
    [
      'names that take long',
      { x: Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [characters + at, {}])) },
    ],
  ]
  test.each(bodies)('of many %s gives way while it is searched', async (_, fields) => {
    expect(await turnsDuring(findModelNames(fields))).toBeGreaterThanOrEqual(5)
  })

  test('has each of its characters folded once', async () => {
    const normalize = spyOn(String.prototype, 'normalize')
    try {
      await findModelNames({ x: Array.from({ length: 1_000 }, (_, at) => ({ [`${characters}${at}`]: {} })) })
      expect(normalize.mock.calls.length).toBeLessThan(20)
    } finally {
      normalize.mockRestore()
    }
  })

  test('gives way while its members are counted', async () => {
    const text = `{"x":[${Array(100_000).fill('{"a":1}').join()}]}`
    const sent = await parseJsonObject(new TextEncoder().encode(text))
    const found = hasMemberTwice(sent)
    expect(await turnsDuring(found)).toBeGreaterThanOrEqual(5)
    expect(await found).toBe(false)
  })
})

async function turnsDuring(work: unknown): Promise<number> {
  let isDone = false
  const done = Promise.resolve(work).then(() => {
    isDone = true
  })
  let turns = 0
  for (; !isDone; turns++) await giveWay()
  await done
  return turns
}
