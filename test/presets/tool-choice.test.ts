// What names or needs something that is not there, such as the choice of a tool, never reaches an upstream from a preset.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { applyPreset, targets } from '../../src/presets/apply.ts'
import { type Dialect, readPreset } from '../../src/presets/preset.ts'
import type { JsonTarget as Target } from '../../src/values/inference-paths.ts'
import { cpuMilliseconds } from '../support/cpu-time.ts'
import type { Fields } from '../support/preset-bodies.ts'

const schema = { type: 'object' }

/** A function in the terms of each body. */
const functionOf: Record<Dialect, (name: string) => Fields> = {
  chat: (name) => ({ type: 'function', function: { name } }),
  messages: (name) => ({ name, input_schema: schema }),
  responses: (name) => ({ type: 'function', name }),
}

const apply = (target: Target, config: Fields, body: Fields) =>
  applyPreset(target, { config: { model: 'own', ...config }, systemPrompt: null }, body)

describe('a choice of the preset', () => {
  const tool = (name: string) => functionOf.chat(name)
  test('waits for the tool that it names', () => {
    const config = { tool_choice: tool('a'), parallel_tool_calls: false }
    expect(apply('chat', config, {})).toEqual({ model: 'own' })
    expect(apply('chat', config, { tools: [] })).toEqual({ model: 'own', tools: [] })
    expect(apply('chat', config, { tools: [tool('b')] })).toEqual({
      model: 'own',
      tools: [tool('b')],
      parallel_tool_calls: false,
    })
    expect(apply('chat', config, { tools: [tool('a')] })).toEqual({ model: 'own', tools: [tool('a')], ...config })
    expect(apply('responses', config, { tools: [functionOf.responses('a')] })).toMatchObject({
      tool_choice: { type: 'function', name: 'a' },
    })
    expect(apply('messages', config, { tools: [functionOf.messages('a')] })).toMatchObject({
      tool_choice: { type: 'tool', name: 'a', disable_parallel_tool_use: true },
    })
  })

  test('goes with a tool that has no counterpart', () => {
    const config = { tools: [{ type: 'openrouter:advisor' }, tool('a')], tool_choice: { type: 'openrouter:advisor' } }
    expect(apply('chat', config, {})).toEqual({ model: 'own', ...config })
    expect(apply('messages', config, {})).not.toHaveProperty('tool_choice')
  })

  test('of web search holds for each of its short names', () => {
    const config = { tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search_preview' } }
    for (const target of ['chat', 'responses'] as const)
      expect(apply(target, config, {})).toEqual({ model: 'own', ...config })
  })

  test('among some tools needs all of them', () => {
    const among = (...tools: Fields[]) => ({ type: 'allowed_tools', allowed_tools: { mode: 'auto', tools } })
    const tools = [tool('a'), tool('b')]
    const chosen = (choice: Fields) => apply('chat', { tools, tool_choice: choice }, {}).tool_choice
    expect(chosen(among(tool('a'), tool('b')))).toEqual(among(tool('a'), tool('b')))
    expect(chosen(among(tool('a'), tool('c')))).toBe(undefined)
    // It reads otherwise there.
    expect(apply('responses', { tools, tool_choice: among(tool('a')) }, {})).not.toHaveProperty('tool_choice')
  })

  test('is searched among all tools of the request', () => {
    const odd: unknown = JSON.parse('[{"name":{"toString":1},"type":{"toString":1}},{"type":"function"},7,null]')
    expect(apply('chat', { tool_choice: tool('a') }, { tools: odd })).toEqual({ model: 'own', tools: odd })
    expect(apply('messages', { tool_choice: tool('a') }, { tools: odd })).toEqual({ model: 'own', tools: odd })
  })

  test('among thousands is judged in no time', () => {
    const many = Array.from({ length: 20_000 }, (_, index) => tool(`f${index}`))
    const choice = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: many.toReversed() } }
    const run = () => apply('chat', { tools: many, tool_choice: choice }, {})
    expect(run()).toHaveProperty('tool_choice')
    expect(cpuMilliseconds(run)).toBeLessThan(100)
    expect(cpuMilliseconds(() => apply('chat', {}, { tools: many, tool_choice: choice }))).toBeLessThan(100)
  })

  test('gives way, and that of the request is the upstream’s to judge', () => {
    const choice = tool('nobody')
    expect(apply('chat', { tool_choice: 'auto' }, { tool_choice: choice, parallel_tool_calls: true })).toEqual({
      model: 'own',
      tool_choice: choice,
      parallel_tool_calls: true,
    })
  })
})

test('the number of likely tokens needs that their probabilities are asked for', () => {
  expect(apply('chat', { top_logprobs: 3 }, {})).toEqual({ model: 'own' })
  expect(apply('chat', { top_logprobs: 3 }, { logprobs: false })).toEqual({ model: 'own', logprobs: false })
  expect(apply('chat', { top_logprobs: 3 }, { logprobs: true })).toEqual({
    model: 'own',
    logprobs: true,
    top_logprobs: 3,
  })
  expect(apply('chat', {}, { top_logprobs: 3 })).toEqual({ model: 'own', top_logprobs: 3 })
  // There it needs nothing else.
  expect(apply('responses', { top_logprobs: 3 }, {})).toEqual({ model: 'own', top_logprobs: 3 })
})

describe('any tools and any choice among them', () => {
  const name = fc.constantFrom('a', 'b', 'bash', 'openrouter:web_search')
  const serverTool = fc.constantFrom<Fields>(
    { type: 'openrouter:bash' },
    { type: 'openrouter:web_search', name: 'a' },
    { type: 'openrouter:advisor' },
    { type: 'web_search' },
  )
  const serverType = fc.constantFrom('openrouter:bash', 'openrouter:web_search', 'openrouter:advisor', 'web_search')
  /** Those that the other dialects do not know. */
  const ownTool: Record<Dialect, fc.Arbitrary<Fields>> = {
    chat: serverTool,
    messages: fc.record({ type: fc.constantFrom('bash_20250124', 'web_search_20250305'), name }),
    responses: fc.record({ type: fc.constantFrom('custom', 'mcp', 'shell', 'namespace'), name }),
  }
  const mode = fc.constantFrom('none', 'auto', 'required')
  const choiceOf: Record<Dialect, fc.Arbitrary<unknown>> = {
    chat: fc.oneof(
      mode,
      name.map(functionOf.chat),
      serverType.map((type) => ({ type })),
      fc.array(name, { maxLength: 2 }).map((names) => ({
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: names.map(functionOf.chat) },
      })),
    ),
    messages: fc.oneof(
      fc.record({ type: fc.constantFrom('auto', 'any', 'none'), disable_parallel_tool_use: fc.boolean() }),
      fc.record({ type: fc.constant('tool'), name, disable_parallel_tool_use: fc.boolean() }),
    ),
    responses: fc.oneof(
      mode,
      name.map(functionOf.responses),
      fc.record({ type: fc.oneof(serverType, fc.constantFrom('custom', 'shell')), name }),
      fc.record({ type: fc.constantFrom('allowed_tools'), mode, tools: fc.array(name.map(functionOf.responses)) }),
    ),
  }
  const toolsOf = (dialect: Dialect) =>
    fc.array(fc.oneof(name.map(functionOf[dialect]), serverTool, ownTool[dialect]), { maxLength: 3 })
  const toolFields = (dialect: Dialect) =>
    fc.record(
      {
        tools: toolsOf(dialect),
        tool_choice: choiceOf[dialect],
        parallel_tool_calls: fc.boolean(),
        top_logprobs: fc.nat({ max: 20 }),
      },
      { requiredKeys: [] },
    )
  const dialects: Dialect[] = ['chat', 'messages', 'responses']

  for (const dialect of dialects)
    for (const target of targets)
      test(`a preset of ${dialect} offers ${target} nothing that is not there`, () => {
        const spoken: Dialect = target === 'messages' || target === 'responses' ? target : 'chat'
        const request = fc.record({ tools: fc.option(toolsOf(spoken)) }, { requiredKeys: [] })
        fc.assert(
          fc.property(toolFields(dialect), request, (fields, body) => {
            const messages = [{ role: 'user', content: 'Hi' }]
            const preset = readPreset(dialect, { model: 'm', messages, ...fields })
            const { tools, tool_choice: choice, ...applied } = applyPreset(target, preset, { ...body, preset: 'a' })
            const there = (tools ?? []) as Fields[]
            expect(there.length > 0 || choice === undefined).toBe(true)
            expect(there.length > 0 || !('parallel_tool_calls' in applied)).toBe(true)
            for (const named of namedIn(choice)) expect(there.filter((tool) => isNamed(tool, named))).not.toEqual([])
            expect(target === 'chat' && 'top_logprobs' in applied).toBe(false)
          }),
          { numRuns: 300 },
        )
      })

  test('a preset that names a tool keeps naming it where it is', () => {
    for (const dialect of dialects)
      for (const target of dialects) {
        const choice = dialect === 'messages' ? { type: 'tool', name: 'a' } : functionOf[dialect]('a')
        const fields = { tools: [functionOf[dialect]('a')], tool_choice: choice }
        const preset = readPreset(dialect, { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...fields })
        expect(namedIn(applyPreset(target, preset, { preset: 'a' }).tool_choice)).toHaveLength(1)
      }
  })

  function namedIn(choice: unknown): Fields[] {
    if (typeof choice !== 'object') return []
    const { type, allowed_tools: allowed } = choice as { type: string; allowed_tools?: { tools: Fields[] } }
    if (type === 'allowed_tools') return allowed?.tools ?? [{ type }]
    return ['auto', 'any', 'none'].includes(type) ? [] : [choice as Fields]
  }

  function isNamed(tool: Fields, named: Fields): boolean {
    const nameIn = (fields: Fields) => (fields.function as Fields | undefined)?.name ?? fields.name
    if (named.type === 'function') return tool.type === 'function' && nameIn(tool) === nameIn(named)
    return named.type === 'tool' ? nameIn(tool) === named.name : tool.type === named.type
  }
})
