// Properties of every preset and every request, with the rules written independently; and the time that checks take.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Fault } from '../../src/fault.ts'
import { applyPreset, targets } from '../../src/presets/apply.ts'
import { type Dialect, readPreset } from '../../src/presets/preset.ts'
import { readPresetReference } from '../../src/presets/reference.ts'
import { cpuMilliseconds } from '../support/cpu-time.ts'
import { chatBody, config, type Fields, kept, messages, requestFields } from '../support/preset-bodies.ts'

const dialects: Dialect[] = ['chat', 'messages', 'responses']

test('a chat body becomes its kept fields that are not null, none lost and none invented', () => {
  fc.assert(
    fc.property(chatBody, (body) => {
      const before = JSON.stringify(body)
      const expected: Fields = {}
      for (const [key, value] of Object.entries(body)) if (key in kept && value !== null) expected[key] = value
      if (expected.service_tier === 'fast') expected.service_tier = 'priority'
      expect(readPreset('chat', body).config).toStrictEqual(expected)
      expect(JSON.stringify(body)).toBe(before)
    }),
    { numRuns: 500 },
  )
})

test('its system prompt is what its system and developer messages say', () => {
  type Message = { role: string; content: string | { text: string }[] | null }
  fc.assert(
    fc.property(messages, (list) => {
      let expected = ''
      for (const { role, content } of list as Message[]) {
        if (role !== 'system' && role !== 'developer') continue
        for (const text of typeof content === 'string' ? [content] : (content ?? []).map((part) => part.text))
          if (text !== '') expected += expected === '' ? text : `\n\n${text}`
      }
      expect(readPreset('chat', { messages: list }).systemPrompt).toBe(expected === '' ? null : expected)
    }),
    { numRuns: 500 },
  )
})

test('a config makes the same preset again', () => {
  const user = [{ role: 'user', content: 'Hi' }]
  fc.assert(
    fc.property(chatBody, (body) => {
      const { config } = readPreset('chat', body)
      expect(readPreset('chat', { messages: user, ...config }).config).toStrictEqual(config)
    }),
  )
})

test('applied to a chat, the request’s fields win, tools are united, and the prompt goes in front of a request without its own', () => {
  const prompt = fc.option(fc.string({ minLength: 1 }))
  fc.assert(
    fc.property(config, prompt, requestFields, messages, (config, systemPrompt, fields, list) => {
      const request: Fields = { ...fields, messages: list }
      const body: Fields = { ...request, preset: 'a' }
      const preset = { config: { model: 'own', ...config }, systemPrompt }
      const before = JSON.stringify([preset, body])
      expect(applyPreset('chat', preset, body)).toStrictEqual(expectedChat(preset, request))
      expect(JSON.stringify([preset, body])).toBe(before)
    }),
    { numRuns: 500 },
  )
})

/** The merge in plain steps (reference: Using a preset): start from the request, and fill in what it leaves open. */
function expectedChat(preset: { config: Fields; systemPrompt: string | null }, request: Fields): Fields {
  const result: Fields = {}
  for (const [key, value] of Object.entries(request)) if (value !== null || !(key in kept)) result[key] = value
  const isOpen = (key: string) => request[key] === undefined || request[key] === null
  const otherNames: Record<string, string> = {
    model: 'models',
    max_tokens: 'max_completion_tokens',
    max_completion_tokens: 'max_tokens',
  }
  for (const [key, value] of Object.entries(preset.config)) {
    const otherName = otherNames[key]
    const isOpenByOtherName =
      otherName === undefined || isOpen(otherName) || (request[otherName] as unknown[]).length === 0
    if (isOpen(key) && isOpenByOtherName) result[key] = value
  }
  // One effort: the request's, by whichever name.
  type Reasoning = { effort?: string; enabled?: boolean } | null | undefined
  if (!isOpen('reasoning_effort') && isOpen('reasoning') && preset.config.reasoning) {
    const { effort: _effort, enabled: _enabled, ...others } = preset.config.reasoning as Fields
    result.reasoning = others
    if (Object.keys(others).length === 0) delete result.reasoning
  }
  const { effort, enabled } = (request.reasoning as Reasoning) ?? {}
  const hasEffort = effort || enabled === false || (enabled && preset.config.reasoning_effort === 'none')
  if (hasEffort && isOpen('reasoning_effort')) delete result.reasoning_effort
  const own = preset.config.tools as Fields[] | undefined
  const theirs = request.tools as Fields[] | null | undefined
  if (own !== undefined && theirs) {
    const ofSameName = (tool: Fields) => theirs.filter((other) => sameTool(tool, other))
    const isFirst = (tool: Fields, index: number) => own.findIndex((other) => sameTool(tool, other)) === index
    const tools = own.flatMap((tool, index) =>
      ofSameName(tool).length === 0 ? [tool] : isFirst(tool, index) ? ofSameName(tool) : [],
    )
    const left = theirs.filter((tool) => !own.some((other) => sameTool(tool, other)))
    result.tools = [...tools, ...left]
  }
  // What the preset says of tools and probabilities waits for them.
  const there = (result.tools ?? []) as Fields[]
  const choice = result.tool_choice as Fields | string | null | undefined
  const isNamed = (tool: Fields) => key(tool) === key(choice as Fields)
  if (isOpen('tool_choice') && (there.length === 0 || (choice && typeof choice === 'object' && !there.some(isNamed))))
    delete result.tool_choice
  if (isOpen('parallel_tool_calls') && there.length === 0) delete result.parallel_tool_calls
  if (isOpen('top_logprobs') && result.logprobs !== true) delete result.top_logprobs
  const list = request.messages as { role: string }[]
  if (preset.systemPrompt !== null && !list.some(({ role }) => role === 'system' || role === 'developer'))
    result.messages = [{ role: 'system', content: preset.systemPrompt }, ...list]
  return result
}

function key(tool: Fields): string {
  return tool.type === 'function' ? `function ${(tool.function as Fields).name}` : `${tool.type}`
}

function sameTool(one: Fields, other: Fields): boolean {
  return key(one) === key(other)
}

test('applied to any request, it keeps the request’s own fields and removes the names of the preset', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...targets),
      config,
      fc.string(),
      fc.jsonValue({ maxDepth: 4 }),
      (target, config, prompt, value) => {
        const own = typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : { value }
        const { preset: _preset, model: _model, models: _models, ...fields } = own
        const preset = { config: { ...config, model: 'own' }, systemPrompt: prompt }
        const applied = applyPreset(target, preset, { ...fields, model: 'm@preset/a@2', preset: 'a@2' })
        expect(applied.model).toBe('m')
        expect(Object.hasOwn(applied, 'preset')).toBe(false)
        const kept = Object.entries(fields).filter(
          ([name, value]) => value !== null && name !== 'tools' && name !== 'messages',
        )
        for (const [name, value] of kept) expect(applied[name]).toEqual(value)
      },
    ),
  )
})

describe('any body', () => {
  const anyBody = fc.oneof(
    fc.dictionary(
      fc.constantFrom(
        ...Object.keys(kept),
        'messages',
        'system',
        'input',
        'instructions',
        'metadata',
        'text',
        'thinking',
        '__proto__',
        'preset',
      ),
      fc.jsonValue({ maxDepth: 5 }),
    ),
    chatBody,
    fc.dictionary(fc.string(), fc.jsonValue()),
  )

  test('is taken or refused with at most ten problems, and nothing else is thrown', () => {
    fc.assert(
      fc.property(fc.constantFrom(...dialects), anyBody, (dialect, body) => {
        const fault = faultOf(() => readPreset(dialect, JSON.parse(JSON.stringify(body))))
        if (fault === undefined) return
        expect(fault.code).toBe('invalid')
        expect(fault.message.length).toBeGreaterThan(0)
      }),
      { numRuns: 1_000 },
    )
  })

  test('is applied or refused, and nothing else is thrown', () => {
    fc.assert(
      fc.property(fc.constantFrom(...targets), anyBody, anyBody, fc.jsonValue(), (target, config, body, preset) => {
        const request = { ...body, preset }
        faultOf(() => {
          readPresetReference(request)
          JSON.stringify(applyPreset(target, { config, systemPrompt: 'a' }, request))
        })
      }),
      { numRuns: 1_000 },
    )
  })

  /** The fault that is thrown, if any; another error fails the test. */
  function faultOf(run: () => void): Fault | undefined {
    try {
      run()
    } catch (error) {
      if (error instanceof Fault) return error
      throw error
    }
  }
})

describe('a megabyte is judged in less than 50 ms of processor time', () => {
  const user = { role: 'user', content: 'Hi' }
  const many = <Item>(count: number, item: (index: number) => Item) =>
    Array.from({ length: count }, (_, index) => item(index))
  const tool = (index: number) => ({
    type: 'function',
    function: { name: `f${index}`, description: 'd'.repeat(80), parameters: { type: 'object', properties: {} } },
  })
  const deep = (levels: number): string => `${'{"a":['.repeat(levels / 2)}1${']}'.repeat(levels / 2)}`
  const bodies: Record<string, Fields> = {
    'of 5,000 tools': { messages: [user], tools: many(5_000, tool) },
    'of 5,000 wrong tools': { messages: [user], tools: many(5_000, () => ({ type: 'x' })) },
    'of 300,000 numbers where texts belong': {
      messages: [user],
      stop: many(300_000, () => 1),
      models: many(300_000, () => 1),
    },
    'of 300,000 wrong messages': { messages: many(300_000, () => 1) },
    'of 20,000 messages': { messages: many(20_000, () => user) },
    'of 20,000 system messages': { messages: many(20_000, () => ({ role: 'system', content: 'Be brief' })) },
    'of 80,000 biases': { messages: [user], logit_bias: Object.fromEntries(many(80_000, (index) => [index * 3, 1])) },
    'of 80,000 wrong biases': {
      messages: [user],
      logit_bias: Object.fromEntries(many(80_000, (index) => [`k${index}`, 'x'])),
    },
    'of 60,000 pairs of metadata': {
      messages: [user],
      metadata: Object.fromEntries(many(60_000, (index) => [`k${index}`, 'x'])),
    },
    'of one long key': { messages: [user], metadata: { ['k'.repeat(1_000_000)]: 'v' } },
    'of one long text': { messages: [user], session_id: '😀'.repeat(250_000), model: 'x'.repeat(1_000_000) },
    '100 levels deep': {
      messages: [user],
      tools: [{ type: 'function', function: { name: 'f', parameters: JSON.parse(deep(100)) } }],
    },
    '100 levels deep a thousand times': {
      messages: [user],
      image_config: { a: many(1_000, () => JSON.parse(deep(100))) },
    },
    'far too deep': { messages: [user], image_config: JSON.parse(deep(20_000)) },
    'of an unknown field': { messages: [user], unknown: many(300_000, () => 1) },
  }
  for (const [name, body] of Object.entries(bodies)) {
    for (const dialect of dialects)
      test(`${name}, as ${dialect}`, () => {
        expect(cpuMilliseconds(() => attempt(() => readPreset(dialect, body)))).toBeLessThan(50)
      })
  }

  test('and applied', () => {
    const tools = many(5_000, tool)
    for (const target of targets)
      expect(
        cpuMilliseconds(() =>
          applyPreset(
            target,
            { config: { tools, model: 'm' }, systemPrompt: 'a' },
            { preset: 'a', tools, messages: many(20_000, () => user) },
          ),
        ),
      ).toBeLessThan(50)
    const name = '@preset/'.repeat(100_000)
    expect(cpuMilliseconds(() => attempt(() => readPresetReference({ model: name, preset: name })))).toBeLessThan(50)
  })

  function attempt(run: () => unknown): void {
    try {
      run()
    } catch (error) {
      if (!(error instanceof Fault)) throw error
    }
  }
})
