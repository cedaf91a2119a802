// The variants of a chat body: plugins by id, tools by type, messages by role, content parts by type; each in full, and what each may not be.
import { describe, expect, test } from 'bun:test'
import * as pluginTypes from '@openrouter/sdk/models/chatrequest'
import { chatBodyProblems } from '../../../src/presets/dialects/from-chat.ts'
import { messageShapes } from '../../../src/presets/schema/messages.ts'
import { pluginShapes } from '../../../src/presets/schema/plugins.ts'
import { serverToolShapes } from '../../../src/presets/schema/tools.ts'
import { describeProblems } from '../../../src/presets/schema/validation.ts'

const user = { role: 'user', content: 'Hi' }
const problemsIn = (fields: Record<string, unknown>) =>
  describeProblems(chatBodyProblems({ messages: [user], ...fields }))
const names = ['a', 'b']

/** A complete variant, and an invalid setting of it with its problem. */
type Row = [whole: Record<string, unknown>, wrong: Record<string, unknown>, problem: string]

const plugins: Record<string, Row> = {
  'auto-beta-router': [
    { allowed_models: names, excluded_models: names, cost_quality_tradeoff: 5, cost_tier: 'xhigh', enabled: true },
    { cost_tier: 'free' },
    'cost_tier: must be one of low, medium, high, xhigh, max',
  ],
  'auto-router': [
    { allowed_models: names, excluded_models: names, cost_quality_tradeoff: 5, cost_tier: 'low', pin_model: true },
    { allowed_models: [1] },
    'allowed_models[0]: must be text',
  ],
  'context-compression': [{ enabled: true, engine: 'middle-out' }, { engine: 'zip' }, 'engine: must be middle-out'],
  'file-parser': [
    { enabled: true, pdf: { engine: 'pdf-text' } },
    { pdf: { engine: 'ghostscript' } },
    'pdf.engine: must be one of mistral-ocr, native, cloudflare-ai, pdf-text',
  ],
  fusion: [
    {
      analysis_models: names,
      model: 'a',
      max_tool_calls: 3,
      preset: 'general-high',
      tools: [{ type: 'a', parameters: { b: [1, null] } }],
    },
    { tools: [{}] },
    'tools[0].type: is required',
  ],
  // It has no settings, so that none can be wrong.
  moderation: [{}, { id: 7 }, ''],
  'pareto-router': [
    { enabled: true, max_price: 1.5, min_coding_score: 0.5, price_source: 'weighted_avg' },
    { max_price: '1' },
    'max_price: must be a number',
  ],
  'response-healing': [{ enabled: false }, { enabled: 1 }, 'enabled: must be true or false'],
  'switchyard-router': [
    { algorithm: 'stage' },
    { algorithm: 'best' },
    'algorithm: must be one of capability, stage, auto, random, composite, passthrough',
  ],
  web: [
    {
      enabled: true,
      engine: 'exa',
      mode: 'deep-lite',
      max_results: 3,
      max_uses: 2,
      search_prompt: 'a',
      include_domains: names,
      exclude_domains: names,
      user_location: { type: 'approximate', city: null, country: 'NL' },
      x_search: { allowed_x_handles: names, enable_image_understanding: true, from_date: '2026-01-01' },
    },
    { max_results: 1.5 },
    'max_results: must be an integer',
  ],
  'web-fetch': [
    { allowed_domains: names, blocked_domains: names, max_content_tokens: 10, max_uses: 1 },
    { max_uses: 'many' },
    'max_uses: must be an integer',
  ],
}

const webSearch = {
  allowed_domains: names,
  excluded_domains: names,
  engine: 'auto',
  mode: 'deep',
  max_characters: 1,
  max_results: 2,
  max_total_results: 3,
  max_uses: 4,
  search_context_size: 'low',
  user_location: { city: 'Delft' },
  x_search: { excluded_x_handles: names, enable_video_understanding: false, to_date: '2026-02-01' },
}
const shorthand: Row = [{ ...webSearch, parameters: webSearch }, { max_uses: 'a' }, 'max_uses: must be an integer']
const asked = { model: 'a', max_completion_tokens: 5, temperature: 1, reasoning: { effort: 'low', max_tokens: 4 } }

const tools: Record<string, Row> = {
  function: [
    {
      function: { name: 'f', description: 'b', parameters: { type: 'object' }, strict: true },
      cache_control: { type: 'ephemeral' },
    },
    { function: { parameters: 'a' } },
    'function.name: is required; tools[0].function.parameters: must be an object',
  ],
  'openrouter:advisor': [
    { parameters: { ...asked, forward_transcript: true, instructions: 'a', name: 'b', stream: true } },
    { parameters: { reasoning: { effort: 'huge' } } },
    'parameters.reasoning.effort: must be one of max, xhigh, high, medium, low, minimal, none',
  ],
  'openrouter:bash': [
    {
      parameters: {
        engine: 'native',
        environment: {
          type: 'container_reference',
          container_id: 'a',
          file_ids: names,
          network_policy: { type: 'allowlist', allowed_domains: names },
        },
      },
    },
    { parameters: { environment: { type: 'container_reference' } } },
    'parameters.environment.container_id: is required',
  ],
  'openrouter:datetime': [
    { parameters: { timezone: 'Europe/Amsterdam' } },
    { parameters: { timezone: 1 } },
    'parameters.timezone: must be text',
  ],
  'openrouter:files': [{ parameters: {} }, { parameters: 'a' }, 'parameters: must be an object'],
  'openrouter:fusion': [
    {
      parameters: {
        ...asked,
        analysis_models: names,
        cache_control: { type: 'ephemeral' },
        max_tool_calls: 1,
        tools: [{ type: 'a', parameters: {} }],
      },
    },
    { parameters: { analysis_models: 'a' } },
    'parameters.analysis_models: must be a list',
  ],
  'openrouter:image_generation': [
    { parameters: { model: 'a', quality: 'high', n: 2 } },
    { parameters: { model: 1 } },
    'parameters.model: must be text',
  ],
  'openrouter:experimental__search_models': [
    { parameters: { max_results: 3 } },
    { parameters: { max_results: 'a' } },
    'parameters.max_results: must be an integer',
  ],
  'openrouter:subagent': [
    {
      parameters: {
        ...asked,
        inherit_functions: true,
        inherited_function_names: names,
        instructions: 'a',
        max_tool_calls: 2,
        name: 'b',
        tools: [{ type: 'a', own: 1 }],
      },
    },
    { parameters: { inherited_function_names: [1] } },
    'parameters.inherited_function_names[0]: must be text',
  ],
  'openrouter:web_fetch': [
    {
      parameters: { allowed_domains: names, blocked_domains: names, engine: 'exa', max_content_tokens: 1, max_uses: 1 },
    },
    { parameters: { engine: 'curl' } },
    'parameters.engine: must be one of auto, native, openrouter, exa, parallel, firecrawl',
  ],
  'openrouter:web_search': [
    { parameters: webSearch },
    { parameters: { search_context_size: 'huge' } },
    'parameters.search_context_size: must be one of low, medium, high',
  ],
  web_search: shorthand,
  web_search_preview: shorthand,
  web_search_preview_2025_03_11: shorthand,
  web_search_2025_08_26: shorthand,
}

describe('the plugin', () => {
  for (const [id, [whole, wrong, expected]] of Object.entries(plugins)) {
    test(`${id} is taken with all its settings, and with none`, () => {
      expect(problemsIn({ plugins: [{ ...whole, id }, { id }] })).toBe('')
    })
    if (wrong.id === undefined)
      test(`${id} is refused for a wrong one`, () =>
        expect(problemsIn({ plugins: [{ ...wrong, id }] })).toBe(`plugins[0].${expected}`))
  }

  test('of another id is refused, naming the 11 that there are', () => {
    expect(problemsIn({ plugins: [{ id: 'web' }, { id: 'toString' }] })).toBe(
      `plugins[1].id: must be one of ${Object.keys(pluginShapes).join(', ')}`,
    )
    expect(Object.keys(pluginShapes)).toHaveLength(11)
    expect(Object.keys(plugins)).toEqual(Object.keys(pluginShapes))
    expect(clientPluginIds().toSorted()).toEqual(Object.keys(pluginShapes).toSorted())
  })
})

describe('the tool', () => {
  for (const [type, [whole, wrong, expected]] of Object.entries(tools)) {
    test(`${type} is accepted in full`, () => expect(problemsIn({ tools: [{ ...whole, type }] })).toBe(''))
    test(`${type} is refused for a wrong setting`, () =>
      expect(problemsIn({ tools: [{ ...wrong, type }] })).toBe(`tools[0].${expected}`))
  }

  test('of another type is refused, naming those that there are', () => {
    const types = ['function', ...Object.keys(serverToolShapes)]
    expect(problemsIn({ tools: [{ type: 'retrieval' }] })).toBe(`tools[0].type: must be one of ${types.join(', ')}`)
    expect(Object.keys(tools)).toEqual(types)
  })

  test('that is a function needs the function', () => {
    expect(problemsIn({ tools: [{ type: 'function' }, { type: 'function', function: { name: '' } }] })).toBe(
      'tools[0].function: is required; tools[1].function.name: must not be empty',
    )
  })
})

const url = { url: 'https://x.test/a' }
const parts = [
  {
    type: 'text',
    text: 'a',
    cache_control: { type: 'ephemeral', ttl: '5m' },
    prompt_cache_breakpoint: { mode: 'explicit' },
  },
  { type: 'image_url', image_url: { ...url, detail: 'original' } },
  { type: 'input_audio', input_audio: { data: 'a', format: 'wav' } },
  { type: 'video_url', video_url: { ...url, processing: 'static' } },
  { type: 'input_video', video_url: url },
  { type: 'file', file: { file_data: 'a', filename: 'b' } },
]
const reasoningDetails = [
  { type: 'reasoning.encrypted', data: 'a', id: null, index: 0, format: 'unknown' },
  { type: 'reasoning.summary', summary: 'a' },
  { type: 'reasoning.text', text: null, signature: 'b' },
  { type: 'reasoning.server_tool_call', arguments: '{}', result: 'a', tool_name: 'b', tool_call_id: null },
]
const toolCall = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }

describe('a message', () => {
  const accepted: Record<string, unknown>[] = [
    user,
    { ...user, name: 'Ann' },
    { role: 'user', content: parts },
    { role: 'system', content: 'a', name: 'b', configuration_update: { reasoning: { effort: 'low' } } },
    { role: 'developer', content: [{ type: 'text', text: 'a' }] },
    { role: 'assistant' },
    { role: 'assistant', content: null, tool_calls: [toolCall], refusal: null },
    { role: 'assistant', content: parts, reasoning: 'a', reasoning_details: reasoningDetails, model: 'm' },
    { role: 'assistant', audio: { id: 'a', data: 'b', transcript: 'c', expires_at: 1 }, images: [{ image_url: url }] },
    { role: 'tool', content: 'a', tool_call_id: 'b' },
    { role: 'tool', content: parts, tool_call_id: 'b' },
  ]
  for (const message of accepted)
    test(`may be ${JSON.stringify(message).slice(0, 100)}`, () => expect(problemsIn({ messages: [message] })).toBe(''))

  const refused: [message: unknown, problem: string][] = [
    ['Hi', ': must be an object'],
    [{ content: 'Hi' }, '.role: is required'],
    [{ role: 'function', content: 'a' }, `.role: must be one of ${Object.keys(messageShapes).join(', ')}`],
    [{ role: 'user' }, '.content: is required'],
    [{ role: 'user', content: 1 }, '.content: must be text or a list of parts'],
    [{ role: 'user', content: { type: 'text', text: 'a' } }, '.content: must be a list'],
    [{ role: 'user', content: 'a', name: 1 }, '.name: must be text'],
    [
      { role: 'user', content: [{ type: 'image', image: 'a' }] },
      '.content[0].type: must be one of text, image_url, input_audio, video_url, input_video, file',
    ],
    [{ role: 'user', content: [{ type: 'text' }] }, '.content[0].text: is required'],
    [{ role: 'user', content: [{ type: 'image_url', image_url: 'a' }] }, '.content[0].image_url: must be an object'],
    [{ role: 'user', content: [{ type: 'input_audio' }] }, '.content[0].input_audio: is required'],
    [{ role: 'user', content: [{ type: 'video_url', video_url: {} }] }, '.content[0].video_url.url: is required'],
    [{ role: 'user', content: [{ type: 'file' }] }, '.content[0].file: is required'],
    [{ role: 'system', content: null }, '.content: is required'],
    [{ role: 'system', content: [parts[1]] }, '.content[0].type: must be text'],
    [{ role: 'developer', content: 1 }, '.content: must be text or a list of text parts'],
    [{ role: 'tool', content: 'a' }, '.tool_call_id: is required'],
    [{ role: 'assistant', tool_calls: [{ id: 'a', type: 'function' }] }, '.tool_calls[0].function: is required'],
    [
      { role: 'assistant', reasoning_details: [{ type: 'a' }] },
      '.reasoning_details[0].type: must be one of reasoning.encrypted, reasoning.summary, reasoning.text, reasoning.server_tool_call',
    ],
  ]
  for (const [message, expected] of refused)
    test(`may not be ${JSON.stringify(message)}`, () =>
      expect(problemsIn({ messages: [user, message] })).toBe(`messages[1]${expected}`))
})

/** The ids in the union of the client's own plugin types. */
function clientPluginIds(): string[] {
  type Schema = { in?: Schema; shape?: { id: { value: string } }; options?: Schema[] }
  const union = pluginTypes.ChatRequestPlugin$outboundSchema as unknown as Schema
  return (union.options ?? []).map((option) => (option.in ?? option).shape?.id.value ?? '')
}
