// Every parameter of a chat body: accepted at its bounds, refused just past them, and all problems reported at once by path and rule.
import { describe, expect, test } from 'bun:test'
import * as client from '@openrouter/sdk/models/chatrequest'
import { chatRequestToJSON } from '@openrouter/sdk/models/chatrequest'
import { chatBodyProblems } from '../../../src/presets/dialects/from-chat.ts'
import { configKeys, keptParameters, passingParameters } from '../../../src/presets/schema/parameters.ts'
import { describeProblems } from '../../../src/presets/schema/validation.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const problemsIn = (fields: Record<string, unknown>) => describeProblems(chatBodyProblems({ messages, ...fields }))

type Row = [name: string, accepted: unknown[], refused: [value: unknown, problemsIn: string][]]

const characters = (count: number) => 'é'.repeat(count)
const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']))
const oneOfEfforts = 'must be one of max, xhigh, high, medium, low, minimal, none'
const number = (name: string): Row => [
  name,
  [0, -5, 2.5],
  ['1', Number.POSITIVE_INFINITY].map((value) => [value, `${name}: must be a number`]),
]
const integer = (name: string): Row => [
  name,
  [0, 16, 2 ** 53 - 1],
  [
    [1.5, `${name}: must be an integer`],
    [2 ** 53, `${name}: must be an integer`],
    ['1', `${name}: must be an integer`],
  ],
]
const flag = (name: string): Row => [name, [true, false], [['true', `${name}: must be true or false`]]]
const text = (name: string): Row => [name, ['', 'a'], [[1, `${name}: must be text`]]]
const between = (name: string, min: number, max: number, kind: 'a number' | 'an integer' = 'a number'): Row => {
  const step = kind === 'a number' ? 0.0001 : 1
  const refused = [min - step, max + step, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, `${max}`]
  return [name, [min, max], refused.map((value) => [value, `${name}: must be ${kind} from ${min} to ${max}`])]
}

const rows: Row[] = [
  [
    'model',
    ['a', 'openai/gpt-4o', characters(256)],
    [
      ['', 'model: must not be empty'],
      [7, 'model: must be text'],
      [characters(257), 'model: must be at most 256 characters'],
      ['@preset/a', 'model: must name a model, not a preset'],
      ['a@preset/b', 'model: must name a model, not a preset'],
    ],
  ],
  [
    'models',
    [[], ['a', 'b'], Array.from({ length: 256 }, () => 'a')],
    [
      ['a', 'models: must be a list'],
      [['a', 1], 'models[1]: must be text'],
      [[null], 'models[0]: must be text'],
      [Array.from({ length: 257 }, () => 'a'), 'models: must have at most 256 items'],
    ],
  ],
  between('temperature', 0, 2),
  between('top_p', 0, 1),
  integer('top_k'),
  number('top_a'),
  number('min_p'),
  between('frequency_penalty', -2, 2),
  between('presence_penalty', -2, 2),
  number('repetition_penalty'),
  integer('max_tokens'),
  integer('max_completion_tokens'),
  [
    'stop',
    ['a', [], ['a', 'b', 'c', 'd']],
    [
      [['a', 'b', 'c', 'd', 'e'], 'stop: must have at most 4 items'],
      [['a', 1], 'stop[1]: must be text'],
      [1, 'stop: must be text or a list of at most 4 texts'],
    ],
  ],
  integer('seed'),
  [
    'logit_bias',
    [{}, { '50256': -100, '11': 1.5 }],
    [
      [{ '1': '2' }, 'logit_bias.1: must be a number'],
      [[1], 'logit_bias: must be an object'],
    ],
  ],
  flag('logprobs'),
  between('top_logprobs', 0, 20, 'an integer'),
  [
    'response_format',
    [
      { type: 'text' },
      { type: 'json_object' },
      { type: 'python' },
      { type: 'grammar', grammar: 'root ::= "a"' },
      { type: 'json_schema', json_schema: { name: 'a' } },
      { type: 'json_schema', json_schema: { name: 'a', description: 'b', schema: { type: 'object' }, strict: null } },
    ],
    [
      [{ type: 'xml' }, 'response_format.type: must be one of text, json_object, json_schema, grammar, python'],
      [{}, 'response_format.type: is required'],
      [{ type: 'grammar' }, 'response_format.grammar: is required'],
      [{ type: 'json_schema' }, 'response_format.json_schema: is required'],
      [{ type: 'json_schema', json_schema: {} }, 'response_format.json_schema.name: is required'],
      ['json_object', 'response_format: must be an object'],
    ],
  ],
  [
    'tools',
    [[]],
    [
      [{}, 'tools: must be a list'],
      [['a'], 'tools[0]: must be an object'],
    ],
  ],
  [
    'tool_choice',
    ['none', 'auto', 'required', { type: 'function', function: { name: 'f' } }, { type: 'openrouter:web_search' }],
    [
      ['any', 'tool_choice: must be one of none, auto, required'],
      [{}, 'tool_choice.type: is required'],
      [{ type: 'function' }, 'tool_choice.function: is required'],
      [{ type: 'function', function: {} }, 'tool_choice.function.name: is required'],
      [[], 'tool_choice: must be an object'],
    ],
  ],
  flag('parallel_tool_calls'),
  [
    'reasoning',
    [{}, { effort: 'xhigh', summary: 'concise' }, { effort: null, max_tokens: 2000, enabled: true }],
    [
      [{ effort: 'huge' }, `reasoning.effort: ${oneOfEfforts}`],
      [{ summary: 'long' }, 'reasoning.summary: must be one of auto, concise, detailed'],
      ['high', 'reasoning: must be an object'],
    ],
  ],
  [
    'reasoning_effort',
    ['max', 'xhigh', 'high', 'medium', 'low', 'minimal', 'none'],
    [
      ['High', `reasoning_effort: ${oneOfEfforts}`],
      [1, `reasoning_effort: ${oneOfEfforts}`],
    ],
  ],
  [
    'provider',
    [
      {},
      { allow_fallbacks: false, require_parameters: null, data_collection: 'deny', zdr: true, order: ['vllm'] },
      { sort: 'price', only: ['a'], ignore: [], quantizations: ['fp8'], enforce_distillable_text: true },
      { sort: { by: 'latency', partition: 'none' }, max_price: { prompt: '1', completion: 2 } },
      { preferred_min_throughput: 10, preferred_max_latency: { p50: 1, p99: null } },
    ],
    [
      [{ allow_fallbacks: 'no' }, 'provider.allow_fallbacks: must be true or false'],
      [{ order: ['a', 1] }, 'provider.order[1]: must be text'],
      [{ sort: 'luck' }, 'provider.sort: must be one of price, throughput, latency, exacto'],
      [{ sort: { partition: 'all' } }, 'provider.sort.partition: must be one of model, none'],
      [{ preferred_max_latency: { p50: 'a' } }, 'provider.preferred_max_latency.p50: must be a number'],
      [{ max_price: { prompt: true } }, 'provider.max_price.prompt: must be a price: text or a number'],
    ],
  ],
  ['route', ['fallback', 'sort'], [['model', 'route: must be one of fallback, sort']]],
  [
    'plugins',
    [[]],
    [
      [{}, 'plugins: must be a list'],
      [[{}], 'plugins[0].id: is required'],
    ],
  ],
  [
    'modalities',
    [[], ['text', 'image', 'audio']],
    [
      [['video'], 'modalities[0]: must be one of text, image, audio'],
      ['text', 'modalities: must be a list'],
    ],
  ],
  ['image_config', [{}, { aspect_ratio: '16:9', any: [1, { deep: true }] }], [[[], 'image_config: must be an object']]],
  [
    'cache_control',
    [{ type: 'ephemeral' }, { type: 'ephemeral', ttl: '1h' }],
    [
      [{}, 'cache_control.type: is required'],
      [{ type: 'forever' }, 'cache_control.type: must be ephemeral'],
      [{ type: 'ephemeral', ttl: '2h' }, 'cache_control.ttl: must be one of 5m, 1h'],
    ],
  ],
  [
    'prompt_cache_options',
    [{ mode: 'explicit' }, { mode: 'explicit', ttl: '30m' }],
    [
      [{ ttl: '30m' }, 'prompt_cache_options.mode: is required'],
      [{ mode: 'auto' }, 'prompt_cache_options.mode: must be explicit'],
    ],
  ],
  [
    'service_tier',
    ['auto', 'default', 'fast', 'flex', 'priority', 'scale'],
    [['slow', 'service_tier: must be one of auto, default, fast, flex, priority, scale']],
  ],
  [
    'stop_server_tools_when',
    [
      [{ type: 'step_count_is', step_count: 5 }],
      [{ type: 'max_cost', max_cost_in_dollars: 0.5 }],
      [{ type: 'max_tokens_used', max_tokens: 10 }],
      [{ type: 'has_tool_call', tool_name: 'f' }],
      [{ type: 'finish_reason_is', reason: 'stop' }],
    ],
    [
      [[], 'stop_server_tools_when: must have at least 1 item'],
      [[{ type: 'step_count_is' }], 'stop_server_tools_when[0].step_count: is required'],
      [
        [{ type: 'max_cost', max_cost_in_dollars: '1' }],
        'stop_server_tools_when[0].max_cost_in_dollars: must be a number',
      ],
      [[{ type: 'max_tokens_used', max_tokens: 1.5 }], 'stop_server_tools_when[0].max_tokens: must be an integer'],
      [[{ type: 'has_tool_call' }], 'stop_server_tools_when[0].tool_name: is required'],
      [[{ type: 'finish_reason_is' }], 'stop_server_tools_when[0].reason: is required'],
      [
        [{ type: 'never' }],
        'stop_server_tools_when[0].type: must be one of finish_reason_is, has_tool_call, max_cost, max_tokens_used, step_count_is',
      ],
    ],
  ],
  [
    'messages',
    [messages],
    [
      [[], 'messages: must have at least 1 item'],
      [undefined, 'messages: is required'],
      [null, 'messages: is required'],
      ['Hi', 'messages: must be a list'],
    ],
  ],
  flag('stream'),
  [
    'stream_options',
    [{}, { include_usage: true }],
    [[{ include_usage: 1 }, 'stream_options.include_usage: must be true or false']],
  ],
  ['prompt', ['a', ['a'], [1, 2]], [[1, 'prompt: must be text or a list']]],
  ['input', ['a', ['a'], [{}]], [[{}, 'input: must be text or a list']]],
  [
    'prediction',
    [
      { type: 'content', content: 'a' },
      { type: 'content', content: [{ type: 'text', text: 'a' }] },
    ],
    [
      [{ content: 'a' }, 'prediction.type: is required'],
      [{ type: 'content' }, 'prediction.content: is required'],
      [{ type: 'content', content: [{ type: 'image_url' }] }, 'prediction.content[0].type: must be text'],
    ],
  ],
  [
    'debug',
    [{}, { echo_upstream_body: true }],
    [[{ echo_upstream_body: 'yes' }, 'debug.echo_upstream_body: must be true or false']],
  ],
  [
    'session_id',
    ['', characters(256), '😀'.repeat(256)],
    [
      [characters(257), 'session_id: must be at most 256 characters'],
      ['😀'.repeat(257), 'session_id: must be at most 256 characters'],
    ],
  ],
  text('user'),
  [
    'trace',
    [
      {},
      { trace_id: 'a', trace_name: 'b', span_name: 'c', generation_name: 'd', parent_span_id: 'e', own: { free: 1 } },
    ],
    [
      [{ trace_id: 1 }, 'trace.trace_id: must be text'],
      ['a', 'trace: must be an object'],
    ],
  ],
  [
    'metadata',
    [{}, pairs(16), { [characters(64)]: characters(512) }],
    [
      [pairs(17), 'metadata: must have at most 16 pairs'],
      [{ trace_id: characters(513) }, 'metadata.trace_id: must be at most 512 characters'],
      [{ ['k'.repeat(65)]: 'v' }, `metadata.${'k'.repeat(64)}…: must have a key of at most 64 characters`],
      [{ a: 1 }, 'metadata.a: must be text'],
      [{ a: null }, 'metadata.a: must be text'],
    ],
  ],
  text('prompt_cache_key'),
]

describe('the parameter', () => {
  for (const [name, accepted, refused] of rows) {
    describe(name, () => {
      for (const value of accepted) test(`may be ${shown(value)}`, () => expect(problemsIn({ [name]: value })).toBe(''))
      for (const [value, expected] of refused)
        test(`may not be ${shown(value)}`, () => expect(problemsIn({ [name]: value })).toBe(expected))
      if (name !== 'messages') test('may be null or left out', () => expect(problemsIn({ [name]: null })).toBe(''))
    })
  }
})

describe('the table', () => {
  test('has a row here for every parameter', () => {
    const names = [...Object.keys(keptParameters), ...Object.keys(passingParameters)]
    expect(rows.map(([name]) => name)).toEqual(names)
  })

  test('keeps the keys that the manual lists, in their order', () => {
    expect(configKeys.join(', ')).toBe(
      'model, models, temperature, top_p, top_k, top_a, min_p, frequency_penalty, presence_penalty, repetition_penalty, max_tokens, max_completion_tokens, stop, seed, logit_bias, logprobs, top_logprobs, response_format, tools, tool_choice, parallel_tool_calls, reasoning, reasoning_effort, provider, route, plugins, modalities, image_config, cache_control, prompt_cache_options, service_tier, stop_server_tools_when',
    )
  })

  test('knows every field that the official client can send', () => {
    const schema = client.ChatRequest$outboundSchema as unknown as { in: { shape: Record<string, unknown> } }
    const names = Object.keys(schema.in.shape).map((name) =>
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    )
    expect(names.length).toBeGreaterThan(40)
    const known: string[] = rows.map(([name]) => name)
    expect(names.filter((name) => !known.includes(name))).toEqual([])
  })
})

describe('a body', () => {
  test('of the official client is taken', () => {
    const body: unknown = JSON.parse(
      chatRequestToJSON({
        model: 'a',
        messages: [
          { role: 'system', content: 'Be brief' },
          { role: 'user', content: [{ type: 'image_url', imageUrl: { url: 'data:,' } }] },
          { role: 'tool', toolCallId: 'a', content: 'b' },
        ],
        temperature: 1,
        serviceTier: 'fast',
        reasoning: { effort: 'high' },
        plugins: [{ id: 'web', maxResults: 3 }],
        tools: [{ type: 'function', function: { name: 'f', parameters: {} } }, { type: 'openrouter:datetime' }],
        stopServerToolsWhen: [{ type: 'step_count_is', stepCount: 3 }],
      }),
    )
    expect(chatBodyProblems(body as Record<string, unknown>)).toEqual([])
  })

  test('may hold unknown fields, also those that every object has', () => {
    const body = JSON.parse(
      '{"messages":[{"role":"user","content":"Hi"}],"x":{"y":1},"__proto__":{"model":7},"toString":1}',
    )
    expect(chatBodyProblems(body)).toEqual([])
  })

  test('inherits nothing', () => {
    expect(chatBodyProblems(Object.create({ messages }))).toEqual([{ path: 'messages', rule: 'is required' }])
  })

  test('may not set two efforts that differ', () => {
    expect(problemsIn({ reasoning: { effort: 'low' }, reasoning_effort: 'high' })).toBe(
      'reasoning_effort: must not differ from reasoning.effort',
    )
    expect(problemsIn({ reasoning: { effort: 'low' }, reasoning_effort: 'low' })).toBe('')
    expect(problemsIn({ reasoning: { effort: null }, reasoning_effort: 'low' })).toBe('')
    expect(problemsIn({ reasoning: { effort: 'low' }, reasoning_effort: null })).toBe('')
  })

  test('is refused with all its problems at once, in the order of the table', () => {
    expect(problemsIn({ metadata: { trace_id: 'a'.repeat(513) }, temperature: 3, stream: 'yes' })).toBe(
      'temperature: must be a number from 0 to 2; stream: must be true or false; metadata.trace_id: must be at most 512 characters',
    )
  })

  test('is refused with at most ten of them', () => {
    expect(chatBodyProblems({ messages, stop: 1, models: Array.from({ length: 16 }, () => 1) })).toHaveLength(10)
    expect(chatBodyProblems({ messages: Array.from({ length: 20 }, () => 1) })).toHaveLength(10)
  })

  test('may be nested 128 levels deep and no deeper', () => {
    const nested = (levels: number): unknown => (levels === 0 ? {} : { a: nested(levels - 1) })
    // The body itself, the parameter and the innermost object are levels too.
    expect(problemsIn({ image_config: nested(126) })).toBe('')
    expect(problemsIn({ image_config: nested(127) })).toBe('body: must be nested at most 128 levels deep')
    const deep = JSON.parse(`{"messages":${'['.repeat(20_000)}${']'.repeat(20_000)}}`)
    expect(chatBodyProblems(deep)[0]?.path).toBe('body')
  })

  test('names a place by its path, strange names quoted', () => {
    expect(problemsIn({ logit_bias: { 'a b': 'c' } })).toBe('logit_bias["a b"]: must be a number')
  })
})

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 60)}… (${text.length})` : text
}
