// An Anthropic body: its accepted and refused values, and its translation to a config and back.
import { describe, expect, test } from 'bun:test'
import { messagesRequestToJSON } from '@openrouter/sdk/models/messagesrequest'
import { messagesBodyProblems } from '../../../src/presets/dialects/from-messages.ts'
import { messagesFields } from '../../../src/presets/dialects/to-messages.ts'
import { readPreset } from '../../../src/presets/preset.ts'
import { describeProblems } from '../../../src/presets/schema/validation.ts'

const schema = { type: 'object', properties: { a: { type: 'string' } } }
const f = { name: 'f', description: 'd', input_schema: schema, cache_control: { type: 'ephemeral' } }
const chatF = {
  type: 'function',
  function: { name: 'f', description: 'd', parameters: schema },
  cache_control: { type: 'ephemeral' },
}
const bash = { type: 'bash_20250124', name: 'bash' }
const choose = (tool_choice: unknown) => ({ tools: [f], tool_choice })

/** A field of the body, what it is in the config, and what that is in a body again where it differs. */
const translated: [body: Record<string, unknown>, config: Record<string, unknown>, back?: Record<string, unknown>][] = [
  [{ model: 'claude' }, { model: 'claude' }],
  [{ models: ['a', 'b'] }, { models: ['a', 'b'] }],
  [{ max_tokens: 100 }, { max_tokens: 100 }],
  [
    { temperature: 1, top_p: 0.5, top_k: 3 },
    { temperature: 1, top_p: 0.5, top_k: 3 },
  ],
  [{ stop_sequences: ['a', 'b'] }, { stop: ['a', 'b'] }],
  [{ tools: [f] }, { tools: [chatF] }],
  [{ tools: [{ ...f, type: 'custom' }] }, { tools: [chatF] }, { tools: [f] }],
  [{ tools: [{ type: 'openrouter:datetime' }] }, { tools: [{ type: 'openrouter:datetime' }] }],
  [{ tools: [bash], tool_choice: { type: 'auto' } }, {}, {}],
  [{ tools: [f, { type: 'web_search_20250305', name: 'web_search' }] }, { tools: [chatF] }, { tools: [f] }],
  [{ tools: [bash, f], tool_choice: { type: 'tool', name: 'bash' } }, { tools: [chatF] }, { tools: [f] }],
  [
    { tools: [bash, f], tool_choice: { type: 'tool', name: 'bash', disable_parallel_tool_use: true } },
    { tools: [chatF], parallel_tool_calls: false },
    { tools: [f], tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
  ],
  [{ tools: [bash], tool_choice: { type: 'any', disable_parallel_tool_use: true } }, {}, {}],
  [
    { tool_choice: { type: 'tool', name: 'of the request' } },
    { tool_choice: { type: 'function', function: { name: 'of the request' } } },
  ],
  [choose({ type: 'auto' }), { tools: [chatF], tool_choice: 'auto' }],
  [choose({ type: 'any' }), { tools: [chatF], tool_choice: 'required' }],
  [choose({ type: 'none' }), { tools: [chatF], tool_choice: 'none' }],
  [
    choose({ type: 'tool', name: 'f', disable_parallel_tool_use: true }),
    { tools: [chatF], tool_choice: { type: 'function', function: { name: 'f' } }, parallel_tool_calls: false },
  ],
  [{ thinking: { type: 'enabled', budget_tokens: 2000 } }, { reasoning: { enabled: true, max_tokens: 2000 } }],
  [{ thinking: { type: 'disabled' } }, { reasoning: { enabled: false } }],
  [{ thinking: { type: 'adaptive' } }, { reasoning: { enabled: true } }],
  [{ output_config: { effort: 'xhigh' } }, { reasoning: { effort: 'xhigh' } }],
  [
    { output_config: { format: { type: 'json_schema', schema } } },
    { response_format: { type: 'json_schema', json_schema: { name: 'output', schema } } },
  ],
  [{ service_tier: 'standard_only' }, { service_tier: 'default' }],
  [{ service_tier: 'auto' }, { service_tier: 'auto' }],
  [{ service_tier: 'fast' }, { service_tier: 'priority' }, {}],
  [{ provider: { order: ['a'] } }, { provider: { order: ['a'] } }],
  [{ plugins: [{ id: 'web' }] }, { plugins: [{ id: 'web' }] }],
  [{ cache_control: { type: 'ephemeral' } }, { cache_control: { type: 'ephemeral' } }],
  [
    { stop_server_tools_when: [{ type: 'step_count_is', step_count: 1 }] },
    { stop_server_tools_when: [{ type: 'step_count_is', step_count: 1 }] },
  ],
  [{ stream: true, metadata: { user_id: 'a' }, session_id: 's', user: 'u', trace: {}, speed: 'fast', x: 1 }, {}, {}],
  [{ model: null, tools: null, thinking: null, output_config: null }, {}, {}],
]

describe('a field', () => {
  for (const [body, config, back] of translated)
    test(`${JSON.stringify(body).slice(0, 90)} is stored as listed`, () => {
      expect(readPreset('messages', body).config).toEqual(config)
      expect(messagesFields(config)).toEqual(back ?? body)
    })

  const dropped: Record<string, unknown>[] = [
    { top_a: 1 },
    { min_p: 1 },
    { seed: 1 },
    { logit_bias: {} },
    { modalities: ['text'] },
    { route: 'sort' },
    { response_format: { type: 'json_object' } },
    { response_format: { type: 'text', json_schema: { name: 'n', schema } } },
    { response_format: { type: 'json_schema', json_schema: { name: 'n' } } },
    { tools: [{ type: 'openrouter:advisor' }] },
  ]
  for (const config of dropped)
    test(`${JSON.stringify(config)} of a config has no counterpart`, () => expect(messagesFields(config)).toEqual({}))

  test('of a config with another name here is translated', () => {
    expect(messagesFields({ stop: 'a', max_tokens: 1, max_completion_tokens: 2 })).toEqual({
      stop_sequences: ['a'],
      max_tokens: 2,
    })
    expect(messagesFields({ reasoning_effort: 'minimal' })).toEqual({ output_config: { effort: 'low' } })
    expect(messagesFields({ reasoning_effort: 'none' })).toEqual({ thinking: { type: 'disabled' } })
    expect(messagesFields({ tools: [{ type: 'function', function: { name: 'f' } }] })).toEqual({
      tools: [{ name: 'f', input_schema: { type: 'object', properties: {} } }],
    })
    expect(messagesFields({ parallel_tool_calls: false })).toEqual({
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    })
  })
})

describe('the system prompt', () => {
  const promptOf = (system: unknown) => readPreset('messages', { system }).systemPrompt
  test('is the top-level system', () => expect(promptOf('Be brief')).toBe('Be brief'))
  test('may come in blocks', () =>
    expect(
      promptOf([
        { type: 'text', text: 'One' },
        { type: 'text', text: 'two', cache_control: { type: 'ephemeral' } },
      ]),
    ).toBe('One\n\ntwo'))
  test('is null otherwise', () => expect([null, undefined, '', []].map(promptOf)).toEqual([null, null, null, null]))
  test('names its field when the database could not keep it', () => expect(() => promptOf('\0')).toThrow(/^system: /))
})

describe('a body', () => {
  const refused: [body: Record<string, unknown>, told: string][] = [
    [{ model: 7 }, 'model: must be text'],
    [{ max_tokens: 1.5 }, 'max_tokens: must be an integer'],
    [{ system: 7 }, 'system: must be text or a list of text blocks'],
    [{ system: [{ type: 'image' }] }, 'system[0].type: must be text'],
    [{ messages: [] }, 'messages: must have at least 1 item'],
    [{ messages: [{ role: 'tool', content: 'a' }] }, 'messages[0].role: must be one of user, assistant, system'],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content: is required'],
    [{ messages: [{ role: 'user', content: [{}] }] }, 'messages[0].content[0].type: is required'],
    [{ temperature: 2.1 }, 'temperature: must be a number from 0 to 2'],
    [{ top_p: 1.1 }, 'top_p: must be a number from 0 to 1'],
    [{ top_k: 'a' }, 'top_k: must be an integer'],
    [{ stop_sequences: ['a', 'b', 'c', 'd', 'e'] }, 'stop_sequences: must have at most 4 items'],
    [{ stop_sequences: 'a' }, 'stop_sequences: must be a list'],
    [{ tools: [{ name: 'f' }] }, 'tools[0].input_schema: is required'],
    [{ tools: [{ type: 'custom' }] }, 'tools[0].name: is required; tools[0].input_schema: is required'],
    [{ tools: [7] }, 'tools[0]: must be an object'],
    [{ tools: [{ type: 7 }] }, 'tools[0].type: must be text'],
    [{ tool_choice: 'auto' }, 'tool_choice: must be an object'],
    [{ tool_choice: { type: 'required' } }, 'tool_choice.type: must be one of auto, any, none, tool'],
    [{ tool_choice: { type: 'tool' } }, 'tool_choice.name: is required'],
    [{ thinking: { type: 'enabled' } }, 'thinking.budget_tokens: is required'],
    [{ thinking: { type: 'on' } }, 'thinking.type: must be one of enabled, disabled, adaptive'],
    [{ output_config: { effort: 'minimal' } }, 'output_config.effort: must be one of low, medium, high, xhigh, max'],
    [{ metadata: { user_id: 7 } }, 'metadata.user_id: must be text'],
    [
      { service_tier: 'gold' },
      'service_tier: must be one of standard_only, auto, default, fast, flex, priority, scale',
    ],
    [{ stream: 1 }, 'stream: must be true or false'],
    [{ session_id: 'a'.repeat(257) }, 'session_id: must be at most 256 characters'],
  ]
  for (const [body, told] of refused)
    test(`may not be ${JSON.stringify(body).slice(0, 80)}`, () =>
      expect(describeProblems(messagesBodyProblems(body))).toBe(told))

  test('of the official client is taken', () => {
    const body: unknown = JSON.parse(
      messagesRequestToJSON({
        model: 'claude',
        maxTokens: 10,
        messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
        system: [{ type: 'text', text: 'Be brief' }],
        tools: [{ name: 'f', inputSchema: { type: 'object' } }],
        toolChoice: { type: 'any' },
        thinking: { type: 'enabled', budgetTokens: 1024 },
      }),
    )
    expect(readPreset('messages', body as Record<string, unknown>)).toEqual({
      config: {
        model: 'claude',
        max_tokens: 10,
        tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
        tool_choice: 'required',
        reasoning: { enabled: true, max_tokens: 1024 },
      },
      systemPrompt: 'Be brief',
    })
  })
})
