// A preset applied to a request, case by case; the rule as a whole is held in properties.test.ts.
import { describe, expect, test } from 'bun:test'
import { applyPreset } from '../../src/presets/apply.ts'
import type { JsonTarget as Target } from '../../src/values/inference-paths.ts'

type Fields = Record<string, unknown>

const user = { role: 'user', content: 'Hi' }
const tool = (name: string, description = 'preset') => ({ type: 'function', function: { name, description } })
const apply = (target: Target, config: Fields, body: Fields, systemPrompt: string | null = null) =>
  applyPreset(target, { config: { model: 'own', ...config }, systemPrompt }, { preset: 's', ...body })

test('of both limits, /completions gets the one that counts reasoning too', () => {
  const limits = { max_tokens: 5, max_completion_tokens: 9 }
  expect(apply('completions', limits, { prompt: 'x' })).toEqual({ model: 'own', prompt: 'x', max_tokens: 9 })
})

describe('the model', () => {
  const preset = { config: { model: 'own', models: ['second'] }, systemPrompt: null }
  const rows: [body: Fields, model: unknown, models: unknown][] = [
    [{ model: '@preset/s' }, 'own', ['second']],
    [{ preset: 's' }, 'own', ['second']],
    [{ model: null, preset: 's' }, 'own', ['second']],
    [{ model: 'theirs', preset: 's' }, 'theirs', ['second']],
    [{ model: 'theirs@preset/s@2' }, 'theirs', ['second']],
    [{ model: '@preset/s', models: ['third'] }, 'own', ['third']],
    [{ preset: 's', models: ['third'] }, undefined, ['third']],
  ]
  for (const [body, model, models] of rows)
    test(`asked for by ${JSON.stringify(body)}`, () => {
      const applied = applyPreset('chat', preset, body)
      expect([applied.model, applied.models]).toEqual([model, models])
      expect(Object.hasOwn(applied, 'preset')).toBe(false)
    })

  test('may be the first of the fallbacks', () => {
    expect(applyPreset('chat', { config: { models: ['a'] }, systemPrompt: null }, { preset: 's' })).toEqual({
      models: ['a'],
    })
  })

  test('must be named by either', () => {
    expect(() => applyPreset('chat', { config: {}, systemPrompt: null }, { model: '@preset/s' })).toThrow(
      'The preset has no model: name one, as in "vendor/model@preset/slug"',
    )
  })
})

describe('a field', () => {
  test('of the request wins, whole', () => {
    const config = { temperature: 1, top_p: 0.5, provider: { order: ['a'], zdr: true } }
    expect(apply('chat', config, { temperature: 0, provider: { order: ['b'] }, own: 1 })).toEqual({
      model: 'own',
      temperature: 0,
      top_p: 0.5,
      provider: { order: ['b'] },
      own: 1,
    })
  })

  test('that is null leaves the choice to the preset, and is absent where the preset has none', () => {
    expect(apply('chat', { temperature: 1 }, { temperature: null, seed: null, models: null })).toEqual({
      model: 'own',
      temperature: 1,
    })
    const nulls = { model: null, models: null, tools: null, tool_choice: null, provider: null }
    for (const target of ['chat', 'messages', 'responses', 'completions', 'embeddings', 'rerank'] as const)
      expect(apply(target, {}, nulls)).toEqual({ model: 'own' })
    expect(apply('messages', {}, { system: null, stop_sequences: null, thinking: null, output_config: null })).toEqual({
      model: 'own',
    })
    expect(apply('responses', {}, { instructions: null, max_output_tokens: null, text: null })).toEqual({
      model: 'own',
    })
    expect(applyPreset('chat', { config: { models: ['a'] }, systemPrompt: null }, { model: null })).toEqual({
      models: ['a'],
    })
  })

  test('that no preset holds passes as it is, null or not', () => {
    const body = { user: null, stream: null, metadata: null, unknown: null, thinking: null, messages: null }
    expect(apply('chat', {}, body)).toEqual({ model: 'own', ...body })
    expect(apply('messages', {}, { metadata: null, seed: null, input: null })).toEqual({
      model: 'own',
      metadata: null,
      input: null,
    })
  })

  test('in other words wins over the same in the preset', () => {
    expect(apply('chat', { max_tokens: 5 }, { max_completion_tokens: 9 })).toEqual({
      model: 'own',
      max_completion_tokens: 9,
    })
    expect(apply('chat', { max_completion_tokens: 5 }, { max_tokens: 9 })).toEqual({ model: 'own', max_tokens: 9 })
    expect(apply('chat', { reasoning_effort: 'high' }, { reasoning: { effort: 'low' } })).toEqual({
      model: 'own',
      reasoning: { effort: 'low' },
    })
    expect(apply('chat', { reasoning: { effort: 'high', summary: 'auto' } }, { reasoning_effort: 'low' })).toEqual({
      model: 'own',
      reasoning: { summary: 'auto' },
      reasoning_effort: 'low',
    })
    expect(apply('chat', { reasoning: { effort: 'high' } }, { reasoning_effort: 'low' })).toEqual({
      model: 'own',
      reasoning_effort: 'low',
    })
    expect(apply('chat', { reasoning_effort: 'high' }, { reasoning: { summary: 'auto' } })).toEqual({
      model: 'own',
      reasoning: { summary: 'auto' },
      reasoning_effort: 'high',
    })
  })
})

describe('tools', () => {
  const united = (own: unknown, theirs: unknown) => apply('chat', { tools: own }, { tools: theirs }).tools
  test('of both are united: preset order first, the new ones appended', () => {
    expect(united([tool('a'), tool('b')], [tool('c'), tool('d')])).toEqual([tool('a'), tool('b'), tool('c'), tool('d')])
  })
  test('of one name are the request’s, in the place of the preset’s', () => {
    expect(united([tool('a'), tool('b')], [tool('c'), tool('a', 'request')])).toEqual([
      tool('a', 'request'),
      tool('b'),
      tool('c'),
    ])
  })
  test('of the server go by their type', () => {
    const search = (max_results: number) => ({ type: 'openrouter:web_search', parameters: { max_results } })
    expect(united([search(1), tool('a')], [search(2)])).toEqual([search(2), tool('a')])
  })
  test('are the preset’s where the request has none', () => {
    expect(united([tool('a')], undefined)).toEqual([tool('a')])
    expect(united([tool('a')], null)).toEqual([tool('a')])
    expect(united([tool('a')], [])).toEqual([tool('a')])
  })
  test('that the request repeats or misspells are left to the upstream', () => {
    expect(united([tool('a')], [tool('b'), tool('b', 'again'), 7])).toEqual([
      tool('a'),
      tool('b'),
      tool('b', 'again'),
      7,
    ])
    expect(united([tool('a')], 'none')).toBe('none')
  })
  test('are united in the terms of the other bodies too', () => {
    const config = { tools: [tool('a'), tool('b')] }
    const anthropic = (name: string, description: string) => ({ name, description, input_schema: { type: 'object' } })
    expect(apply('messages', config, { tools: [anthropic('b', 'request')] }).tools).toEqual([
      { ...anthropic('a', 'preset'), input_schema: { type: 'object', properties: {} } },
      anthropic('b', 'request'),
    ])
    const flat = (name: string, description: string) => ({ type: 'function', name, description })
    expect(apply('responses', config, { tools: [flat('b', 'request'), flat('c', 'request')] }).tools).toEqual([
      flat('a', 'preset'),
      flat('b', 'request'),
      flat('c', 'request'),
    ])
  })
})

describe('the system prompt', () => {
  const chat = (...messages: Fields[]) => apply('chat', {}, { messages }, 'Be brief').messages
  test('goes in front of the messages', () => {
    expect(chat(user, user)).toEqual([{ role: 'system', content: 'Be brief' }, user, user])
    expect(chat()).toEqual([{ role: 'system', content: 'Be brief' }])
  })
  test('gives way to a system or developer message, wherever it is', () => {
    for (const role of ['system', 'developer'])
      expect(chat(user, { role, content: 'x' })).toEqual([user, { role, content: 'x' }])
  })
  test('is the system of /messages, unless there is one', () => {
    expect(apply('messages', {}, { messages: [user] }, 'Be brief').system).toBe('Be brief')
    expect(apply('messages', {}, { messages: [user], system: null }, 'Be brief').system).toBe('Be brief')
    expect(apply('messages', {}, { messages: [user], system: 'x' }, 'Be brief').system).toBe('x')
    expect(apply('messages', {}, { messages: [user, { role: 'system', content: 'x' }] }, 'Be brief').system).toBe(
      undefined,
    )
  })
  test('is the instructions of /responses, unless there are some', () => {
    expect(apply('responses', {}, { input: 'Hi' }, 'Be brief').instructions).toBe('Be brief')
    expect(apply('responses', {}, { input: 'Hi', instructions: 'x' }, 'Be brief').instructions).toBe('x')
    expect(apply('responses', {}, { input: [{ role: 'developer', content: 'x' }] }, 'Be brief').instructions).toBe(
      undefined,
    )
  })
  test('leaves messages that are no list to the upstream', () => {
    expect(apply('chat', {}, { messages: 'Hi' }, 'Be brief').messages).toBe('Hi')
  })
  test('is nothing to completions, embeddings and rerank', () => {
    for (const target of ['completions', 'embeddings', 'rerank'] as const)
      expect(apply(target, {}, { input: 'Hi' }, 'Be brief')).toEqual({ model: 'own', input: 'Hi' })
  })
})

describe('the config of a chat', () => {
  const config = {
    models: ['b'],
    temperature: 1,
    max_completion_tokens: 5,
    stop: 'x',
    logprobs: true,
    tools: [tool('a')],
    tool_choice: 'auto',
    provider: { zdr: true },
    reasoning_effort: 'high',
    response_format: { type: 'json_object' },
  }
  const shared = { model: 'own', models: ['b'], provider: { zdr: true } }
  const rows: [Target, Fields][] = [
    ['chat', { ...config, model: 'own' }],
    [
      'messages',
      {
        ...shared,
        temperature: 1,
        max_tokens: 5,
        stop_sequences: ['x'],
        tools: [{ name: 'a', description: 'preset', input_schema: { type: 'object', properties: {} } }],
        tool_choice: { type: 'auto' },
        output_config: { effort: 'high' },
      },
    ],
    [
      'responses',
      {
        ...shared,
        temperature: 1,
        max_output_tokens: 5,
        tools: [{ type: 'function', name: 'a', description: 'preset' }],
        tool_choice: 'auto',
        reasoning: { effort: 'high' },
        text: { format: { type: 'json_object' } },
      },
    ],
    ['completions', { ...shared, temperature: 1, max_tokens: 5, stop: 'x', response_format: { type: 'json_object' } }],
    ['embeddings', shared],
    ['rerank', shared],
  ]
  for (const [target, expected] of rows)
    test(`is translated for ${target}`, () => expect(apply(target, config, {})).toEqual(expected))

  test('offers /messages no choice among no tools', () => {
    expect(apply('messages', { parallel_tool_calls: false }, {})).toEqual({ model: 'own' })
    const tools = [{ name: 'a', input_schema: {} }]
    expect(apply('messages', { parallel_tool_calls: false }, { tools })).toEqual({
      model: 'own',
      tools,
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    })
  })
})
