// An OpenAI Responses body: its accepted and refused values, and its translation to a config and back.
import { describe, expect, test } from 'bun:test'
import { responsesRequestToJSON } from '@openrouter/sdk/models/responsesrequest'
import { responsesBodyProblems } from '../../../src/presets/dialects/from-responses.ts'
import { responsesFields } from '../../../src/presets/dialects/to-responses.ts'
import { readPreset } from '../../../src/presets/preset.ts'
import { describeProblems } from '../../../src/presets/schema/validation.ts'

const schema = { type: 'object' }
const f = { type: 'function', name: 'f', description: 'd', parameters: schema, strict: true }
const chatF = { type: 'function', function: { name: 'f', description: 'd', parameters: schema, strict: true } }

const same: Record<string, unknown>[] = [
  { model: 'a' },
  { models: ['a'] },
  { temperature: 1, top_p: 0.5, top_k: 3 },
  { frequency_penalty: 1, presence_penalty: -1 },
  { top_logprobs: 5 },
  { parallel_tool_calls: false },
  { reasoning: { effort: 'low', summary: 'auto' } },
  { tool_choice: 'required' },
  { tools: [{ type: 'openrouter:web_search' }, { type: 'web_search', filters: {} }] },
  { tool_choice: { type: 'web_search_preview' } },
  { tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search_preview' } },
  { provider: { order: ['a'] } },
  { plugins: [{ id: 'web' }] },
  { modalities: ['text'] },
  { image_config: { a: 1 } },
  { cache_control: { type: 'ephemeral' } },
  { prompt_cache_options: { mode: 'explicit' } },
  { service_tier: 'flex' },
  { stop_server_tools_when: [{ type: 'step_count_is', step_count: 1 }] },
]

const translated: [body: Record<string, unknown>, config: Record<string, unknown>, back?: Record<string, unknown>][] = [
  ...same.map((fields): [Record<string, unknown>, Record<string, unknown>] => [fields, fields]),
  [{ max_output_tokens: 10 }, { max_completion_tokens: 10 }],
  [{ tools: [f] }, { tools: [chatF] }],
  [{ tools: [f, { type: 'mcp', server_label: 'a' }] }, { tools: [chatF] }, { tools: [f] }],
  [{ tools: [{ type: 'shell' }], tool_choice: { type: 'shell' } }, {}, {}],
  [{ tools: [{ type: 'mcp' }], tool_choice: 'required', parallel_tool_calls: true }, {}, {}],
  [
    { tools: [{ type: 'custom', name: 'c' }, f], tool_choice: { type: 'function', name: 'c' } },
    { tools: [chatF] },
    { tools: [f] },
  ],
  [
    {
      tools: [{ type: 'custom', name: 'c' }, f],
      tool_choice: { type: 'custom', name: 'c' },
      parallel_tool_calls: true,
    },
    { tools: [chatF], parallel_tool_calls: true },
    { tools: [f], parallel_tool_calls: true },
  ],
  [{ tools: [f], tool_choice: { type: 'openrouter:bash' } }, { tools: [chatF] }, { tools: [f] }],
  [
    { tools: [{ type: 'function', name: 'f', parameters: null }] },
    { tools: [{ type: 'function', function: { name: 'f' } }] },
    { tools: [{ type: 'function', name: 'f' }] },
  ],
  [{ tool_choice: { type: 'function', name: 'f' } }, { tool_choice: { type: 'function', function: { name: 'f' } } }],
  [{ tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [] } }, {}, {}],
  [{ text: { format: { type: 'json_object' } } }, { response_format: { type: 'json_object' } }],
  [
    { text: { format: { type: 'json_schema', name: 'a', schema, strict: true } } },
    { response_format: { type: 'json_schema', json_schema: { name: 'a', schema, strict: true } } },
  ],
  [{ text: { verbosity: 'low' } }, {}, {}],
  [{ service_tier: 'fast' }, { service_tier: 'priority' }, { service_tier: 'priority' }],
  [{ input: 'a', stream: true, metadata: { a: 'b' }, store: false, user: 'u', prompt_cache_key: 'k', x: 1 }, {}, {}],
  [{ model: null, tools: null, text: null, instructions: null }, {}, {}],
]

describe('a field', () => {
  for (const [body, config, back] of translated)
    test(`${JSON.stringify(body).slice(0, 90)} is stored as listed`, () => {
      expect(readPreset('responses', body).config).toEqual(config)
      expect(responsesFields(config)).toEqual(back ?? body)
    })

  const dropped: Record<string, unknown>[] = [
    { top_a: 1 },
    { min_p: 1 },
    { repetition_penalty: 1 },
    { seed: 1 },
    { logit_bias: {} },
    { logprobs: true },
    { stop: 'a' },
    { route: 'sort' },
    { response_format: { type: 'python' } },
  ]
  for (const config of dropped)
    test(`${JSON.stringify(config)} of a config has no counterpart`, () => expect(responsesFields(config)).toEqual({}))

  test('of a config with another name here is translated', () => {
    expect(responsesFields({ max_tokens: 1, max_completion_tokens: 2 })).toEqual({ max_output_tokens: 2 })
    expect(responsesFields({ max_tokens: 1 })).toEqual({ max_output_tokens: 1 })
    expect(responsesFields({ reasoning: { summary: 'auto' }, reasoning_effort: 'low' })).toEqual({
      reasoning: { summary: 'auto', effort: 'low' },
    })
  })

  test('of a config keeps its type and all its members', () => {
    expect(responsesFields({ tools: [{ type: 'function', function: { name: 'f', type: 'mcp' } }] })).toEqual({
      tools: [{ type: 'function', name: 'f' }],
    })
    const format = (response_format: unknown) => responsesFields({ response_format })
    expect(format({ type: 'json_schema', json_schema: { name: 'n', schema, type: 'grammar' } })).toEqual({
      text: { format: { type: 'json_schema', name: 'n', schema } },
    })
    for (const type of ['text', 'json_object'])
      expect(format({ type, json_schema: { name: 'n', schema } })).toEqual({ text: { format: { type } } })
  })

  test('of a config without a schema has no counterpart', () => {
    for (const json_schema of [undefined, null, {}, { name: 'n' }, { name: 'n', schema: null }])
      expect(responsesFields({ response_format: { type: 'json_schema', json_schema } })).toEqual({})
  })
})

describe('the system prompt', () => {
  test('is the instructions alone', () => {
    const input = [{ role: 'developer', content: 'Not this' }]
    expect(readPreset('responses', { instructions: 'Be brief', input }).systemPrompt).toBe('Be brief')
    expect(readPreset('responses', { input }).systemPrompt).toBe(null)
    expect(readPreset('responses', { instructions: '' }).systemPrompt).toBe(null)
  })
})

describe('a body', () => {
  const refused: [body: Record<string, unknown>, told: string][] = [
    [{ model: 7 }, 'model: must be text'],
    [{ instructions: 7 }, 'instructions: must be text'],
    [{ input: 7 }, 'input: must be text or a list of items'],
    [{ input: ['a'] }, 'input[0]: must be an object'],
    [{ max_output_tokens: 'a' }, 'max_output_tokens: must be an integer'],
    [{ temperature: -1 }, 'temperature: must be a number from 0 to 2'],
    [{ top_logprobs: 21 }, 'top_logprobs: must be an integer from 0 to 20'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].name: is required'],
    [{ tools: [{ type: 'function', name: 'f', parameters: 'a' }] }, 'tools[0].parameters: must be an object'],
    [{ tool_choice: 'any' }, 'tool_choice: must be one of none, auto, required'],
    [{ tool_choice: { type: 'function' } }, 'tool_choice.name: is required'],
    [
      { reasoning: { effort: 'huge' } },
      'reasoning.effort: must be one of max, xhigh, high, medium, low, minimal, none',
    ],
    [{ text: { format: { type: 'grammar' } } }, 'text.format.type: must be one of text, json_object, json_schema'],
    [{ text: { format: { type: 'json_schema', name: 'a' } } }, 'text.format.schema: is required'],
    [{ metadata: { a: 'b'.repeat(513) } }, 'metadata.a: must be at most 512 characters'],
    [{ parallel_tool_calls: 1 }, 'parallel_tool_calls: must be true or false'],
    [{ service_tier: 'gold' }, 'service_tier: must be one of auto, default, fast, flex, priority, scale'],
    [{ truncation: 'some' }, 'truncation: must be one of auto, disabled'],
    [{ prompt: 'a' }, 'prompt: must be an object'],
  ]
  for (const [body, told] of refused)
    test(`may not be ${JSON.stringify(body).slice(0, 80)}`, () =>
      expect(describeProblems(responsesBodyProblems(body))).toBe(told))

  test('with an unknown tool is refused', () => {
    expect(responsesBodyProblems({ tools: [{ type: 'retrieval' }] })).toMatchObject([{ path: 'tools[0].type' }])
  })

  test('of the official client is taken', () => {
    const body: unknown = JSON.parse(
      responsesRequestToJSON({
        model: 'a',
        input: [{ role: 'user', content: 'Hi' }],
        instructions: 'Be brief',
        maxOutputTokens: 10,
        tools: [{ type: 'function', name: 'f', parameters: {} }],
        text: { format: { type: 'json_object' } },
      }),
    )
    expect(readPreset('responses', body as Record<string, unknown>)).toEqual({
      config: {
        model: 'a',
        max_completion_tokens: 10,
        tools: [{ type: 'function', function: { name: 'f', parameters: {} } }],
        response_format: { type: 'json_object' },
        service_tier: 'auto',
      },
      systemPrompt: 'Be brief',
    })
  })
})
