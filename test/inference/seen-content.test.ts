// What a stream counts that ends before its usage came: at least the content that was seen.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { inspectEvents } from '../../src/inference/event-inspector.ts'
import { inspectJson } from '../../src/inference/json-inspector.ts'
import { raiseToSeen } from '../../src/inference/usage.ts'
import { metricsText } from '../../src/monitoring/metrics-report.ts'
import {
  deltaOf,
  eventOf,
  type Inference,
  startInference,
  streamReply,
  type UsageRow,
  usageEvent,
} from '../support/inference.ts'
import { holdStream } from '../support/scripted-upstream.ts'

/** The tokens seen, with each event in its own chunk, and with all in one. */
function seenIn(...events: string[]): number | undefined {
  const found = [events, [events.join('')]].map((chunks) => {
    const inspector = inspectEvents({ withholdsUsage: true })
    for (const chunk of chunks) inspector.take(Buffer.from(chunk))
    return inspector.result().tokensSeen
  })
  expect(found[0]).toBe(found[1])
  return found[0]
}

const chat = (delta: object, more: object = {}) => eventOf({ model: 'm', choices: [{ index: 0, delta, ...more }] })
const typed = (type: string, more: object = {}) => `event: ${type}\n${eventOf({ type, ...more })}`

describe('the tokens seen in a stream', () => {
  test.each([
    [
      'one for each short piece of content',
      [chat({ content: 'a' }), chat({ content: 'b' }), chat({ content: 'c' })],
      3,
    ],
    ['a quarter of the bytes of longer pieces', [chat({ content: 'abcdefgh' }), chat({ content: 'abcdefgh' })], 4],
    ['the bytes of what escapes stand for', [chat({ content: '"\n\\\u0001'.repeat(4) })], 4],
    ['the bytes of other scripts', [chat({ content: 'ééééé' })], 2],
    ['a finish reason with content', [chat({ content: 'a' }), chat({ content: 'b' }, { finish_reason: 'stop' })], 2],
    ['content beside a usage of null', [0, 1, 2].map(() => chat({ content: 'a' }, { usage: null })), 3],
    ['reasoning, then content', [chat({ reasoning_content: 'a' }), chat({ content: 'b' }), chat({ content: 'c' })], 3],
    ['arguments of a tool', [chat({ tool_calls: [{ function: { name: 'f', arguments: '{"a' } }] })], 1],
    [
      'one piece that is written twice',
      [chat({ reasoning: 'abcdefgh', reasoning_details: [{ text: 'abcdefgh' }] })],
      2,
    ],
    ['completions', [eventOf({ model: 'm', choices: [{ text: 'a' }] }), eventOf({ choices: [{ text: 'b' }] })], 2],
    [
      'messages',
      [
        typed('message_start', { message: { model: 'm', content: [], usage: { input_tokens: 3, output_tokens: 1 } } }),
        typed('content_block_start', { content_block: { type: 'text', text: '' } }),
        ...['a', 'b', 'c'].map((text) => typed('content_block_delta', { delta: { type: 'text_delta', text } })),
        typed('content_block_stop'),
      ],
      3,
    ],
    [
      'responses, without what repeats the content',
      [
        typed('response.created', { response: { model: 'm', instructions: 'long instructions', output: [] } }),
        typed('response.content_part.added', { part: { type: 'output_text', text: '' } }),
        ...['a', 'b'].map((delta) => typed('response.output_text.delta', { delta })),
        typed('response.output_text.done', { text: 'repeated '.repeat(100) }),
        typed('response.content_part.done', { part: { type: 'output_text', text: 'repeated '.repeat(100) } }),
      ],
      2,
    ],
    ['nothing in roles, empty content and comments', [chat({ role: 'assistant', content: '' }), ': wait\n\n'], 0],
    ['nothing in log probabilities', [chat({}, { logprobs: { content: [{ token: 'a', bytes: [97] }] } })], 0],
    ['nothing once the usage has come', [chat({ content: 'a' }), usageEvent], undefined],
  ] as [string, string[], number | undefined][])('are %s', (_, events, expected) => {
    expect(seenIn(...events)).toBe(expected)
    expect(seenIn(...events.map((event) => event.replaceAll('\n', '\r\n')))).toBe(expected)
  })

  test('are not counted in JSON, whose content is not distinguished from the rest', () => {
    const inspector = inspectJson()
    inspector.take(Buffer.from('{"choices":[{"message":{"content":"abcdefgh'))
    expect(inspector.result().tokensSeen).toBeUndefined()
  })

  test('raise only the completion, and keep what the upstream reported', () => {
    const none = { cachedTokens: null, reasoningTokens: null, costNanodollars: null }
    const reported = { ...none, promptTokens: 30, completionTokens: 1, totalTokens: 31, cachedTokens: 2 }
    expect(raiseToSeen(reported, 5)).toEqual({ ...reported, completionTokens: 5, totalTokens: 35 })
    expect(raiseToSeen(undefined, 5)).toEqual({ ...none, promptTokens: null, completionTokens: 5, totalTokens: 5 })
  })
})

describe('the ledger', () => {
  let latchkey: Inference
  beforeAll(async () => {
    latchkey = await startInference()
    await latchkey.admin('prices.set', { prices: [{ model: 'm', prompt: 1, completion: 2 }] })
  })
  beforeEach(() => latchkey.reset())
  afterAll(() => latchkey.stop())

  type Row = UsageRow & Record<string, unknown>
  const stream = (signal?: AbortSignal) => latchkey.complete({ model: 'asked', messages: [], stream: true }, {}, signal)

  test('has the least value of a stream that its client left, with its mark, and budgets and rates count it', async () => {
    const { spending, keyRates } = latchkey.server.context
    const spentBefore = spending.of(latchkey.key.id, Date.now()).ever
    const held = holdStream()
    latchkey.upstream.answer.current = () => held.response
    for (let count = 0; count < 6; count++) held.send(deltaOf('x'))
    const recorded = Promise.withResolvers<void>()
    const use = keyRates.use
    const used: number[] = []
    keyRates.use = (keyId, tokens, now) => {
      used.push(tokens)
      use(keyId, tokens, now)
      recorded.resolve()
    }
    const leaving = new AbortController()
    const response = await stream(leaving.signal)
    const reader = response.body?.getReader()
    for (let bytes = 0; bytes < 6 * deltaOf('x').length; ) bytes += (await reader?.read())?.value?.byteLength ?? 0
    leaving.abort()
    await recorded.promise
    keyRates.use = use
    expect(await latchkey.usageOf(response)).toMatchObject([
      {
        completed: false,
        client_left: true,
        usage_source: 'none',
        estimated: true,
        prompt_tokens: null,
        completion_tokens: 6,
        total_tokens: 6,
        cost: 0.000_012,
      },
    ])
    expect(spending.of(latchkey.key.id, Date.now()).ever - spentBefore).toBe(12_000)
    expect(used).toEqual([6])
  })

  test('has it of a stream that the upstream cut, too', async () => {
    latchkey.upstream.answer.current = () => streamReply(deltaOf('x') + deltaOf('y'))
    const response = await stream()
    await response.text()
    const row = { completed: false, client_left: false, usage_source: 'none', estimated: true, total_tokens: 2 }
    expect(await latchkey.usageOf(response)).toMatchObject([row])
  })

  test.each([
    [
      'that ended, without usage',
      deltaOf('x') + eventOf('[DONE]'),
      { completed: true, usage_source: 'none', total_tokens: null },
    ],
    ['that was cut after its usage', deltaOf('x'.repeat(99)) + usageEvent, { completed: false, total_tokens: 7 }],
    ['that was cut before any content', eventOf({ model: 'm', choices: [] }), { completed: false, total_tokens: null }],
  ])('has no estimate of a stream %s', async (_, text, expected) => {
    latchkey.upstream.answer.current = () => streamReply(text)
    const response = await stream()
    await response.text()
    const [row] = (await latchkey.usageOf(response)) as Row[]
    expect(row).toMatchObject({ ...expected, estimated: false })
  })

  test('missing usage is counted, by what the ledger has instead', async () => {
    const read = async () => {
      const text = await metricsText(latchkey.server.context)
      return (text.match(/^latchkey_inference_missing_usage_total.*$/gm) ?? []).map((line) => [
        /ledger="(\w+)"/.exec(line)?.[1],
        Number(line.split(' ').at(-1)),
      ])
    }
    const before = Object.fromEntries(await read())
    for (const text of [deltaOf('x'), deltaOf('x') + eventOf('[DONE]'), usageEvent + eventOf('[DONE]')]) {
      latchkey.upstream.answer.current = () => streamReply(text)
      await (await stream()).text()
    }
    latchkey.upstream.answer.current = () => new Response('{}', { status: 400 })
    await (await stream()).text()
    expect(Object.fromEntries(await read())).toEqual({
      estimate: (before.estimate ?? 0) + 1,
      nothing: (before.nothing ?? 0) + 1,
    })
  })
})
