// Arbitrary valid chat bodies for property tests.
import fc from 'fast-check'

const word = fc.string({ maxLength: 8 })
const name = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd'), minLength: 1, maxLength: 2 })
const number = fc.double({ noNaN: true, noDefaultInfinity: true })
const between = (min: number, max: number) => fc.double({ min, max, noNaN: true })
const integer = fc.maxSafeInteger()
const schema = fc.dictionary(word, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 3 })
const effort = fc.constantFrom('max', 'xhigh', 'high', 'medium', 'low', 'minimal', 'none')
const textParts = fc.array(fc.record({ type: fc.constant('text'), text: word }), { maxLength: 3 })
const content = fc.oneof(word, textParts)

export const chatTool = fc.oneof(
  fc.record(
    {
      type: fc.constant('function'),
      function: fc.record({ name, description: word, parameters: schema }, { requiredKeys: ['name'] }),
    },
    { requiredKeys: ['type', 'function'] },
  ),
  fc.constantFrom({ type: 'openrouter:datetime' }, { type: 'openrouter:web_search', parameters: { max_results: 3 } }),
)

export const chatMessage = fc.oneof(
  fc.record({ role: fc.constantFrom('system', 'developer', 'user'), content }),
  fc.record({ role: fc.constant('assistant'), content: fc.oneof(content, fc.constant(null)) }),
  fc.record({ role: fc.constant('tool'), content, tool_call_id: word }),
)

/** The stored parameters, each with its valid values. */
export const kept: Record<string, fc.Arbitrary<unknown>> = {
  model: name,
  models: fc.array(name, { maxLength: 16 }),
  temperature: between(0, 2),
  top_p: between(0, 1),
  top_k: integer,
  top_a: number,
  min_p: number,
  frequency_penalty: between(-2, 2),
  presence_penalty: between(-2, 2),
  repetition_penalty: number,
  max_tokens: integer,
  max_completion_tokens: integer,
  stop: fc.oneof(word, fc.array(word, { maxLength: 4 })),
  seed: integer,
  logit_bias: fc.dictionary(fc.nat().map(String), number, { maxKeys: 4 }),
  logprobs: fc.boolean(),
  top_logprobs: fc.integer({ min: 0, max: 20 }),
  response_format: fc.oneof(
    fc.record({ type: fc.constantFrom('text', 'json_object', 'python') }),
    fc.record({ type: fc.constant('json_schema'), json_schema: fc.record({ name, schema }) }),
  ),
  tools: fc.array(chatTool, { maxLength: 5 }),
  tool_choice: fc.oneof(
    fc.constantFrom('none', 'auto', 'required'),
    fc.record({ type: fc.constant('function'), function: fc.record({ name }) }),
  ),
  parallel_tool_calls: fc.boolean(),
  reasoning: fc.record(
    { effort, summary: fc.constantFrom('auto', 'concise', 'detailed'), enabled: fc.boolean() },
    { requiredKeys: [] },
  ),
  reasoning_effort: effort,
  provider: fc.record({ allow_fallbacks: fc.boolean(), order: fc.array(word) }, { requiredKeys: [] }),
  route: fc.constantFrom('fallback', 'sort'),
  plugins: fc.array(fc.record({ id: fc.constantFrom('web', 'moderation', 'fusion', 'web-fetch') }), { maxLength: 3 }),
  modalities: fc.array(fc.constantFrom('text', 'image', 'audio')),
  image_config: schema,
  cache_control: fc.constantFrom({ type: 'ephemeral' }, { type: 'ephemeral', ttl: '1h' }),
  prompt_cache_options: fc.record({ mode: fc.constant('explicit'), ttl: word }),
  service_tier: fc.constantFrom('auto', 'default', 'fast', 'flex', 'priority', 'scale'),
  stop_server_tools_when: fc.array(fc.record({ type: fc.constant('step_count_is'), step_count: integer }), {
    minLength: 1,
  }),
}

/** Parameters that a preset does not store, and unknown ones. */
const passing: Record<string, fc.Arbitrary<unknown>> = {
  stream: fc.boolean(),
  user: word,
  metadata: fc.dictionary(word, word, { maxKeys: 16 }),
  trace: schema.map(({ trace_id, trace_name, span_name, generation_name, parent_span_id, ...free }) => free),
  session_id: word,
  prompt: word,
  unknown: fc.jsonValue({ maxDepth: 3 }),
}

const orNull = (fields: Record<string, fc.Arbitrary<unknown>>) =>
  Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, fc.oneof({ weight: 9, arbitrary: value }, fc.constant(null))]),
  )

export type Fields = Record<string, unknown>

/** The body after JSON parsing, with the same effort under both names. */
function arriving(fields: Record<string, unknown>): Fields {
  const body = JSON.parse(JSON.stringify(fields)) as Fields & { reasoning?: { effort?: string } | null }
  if (body.reasoning?.effort && body.reasoning_effort) body.reasoning_effort = body.reasoning.effort
  return body
}

export const config = fc.record(kept, { requiredKeys: [] }).map(arriving)
export const requestFields = fc.record(orNull(kept), { requiredKeys: [] }).map(arriving)
export const messages = fc.array(chatMessage, { minLength: 1, maxLength: 5 })
export const chatBody = fc
  .record({ messages, ...orNull({ ...kept, ...passing }) }, { requiredKeys: ['messages'] })
  .map(arriving)
