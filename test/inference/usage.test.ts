// Finding the token counts in an answer: however the bytes are cut, the same bytes go out and the same counts come
// back.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { inspectEvents } from '../../src/inference/event-inspector.ts'
import { inspectJson } from '../../src/inference/json-inspector.ts'
import { errorWordOf, type Inspector } from '../../src/inference/usage.ts'

/** Runs bytes through in the given pieces. */
function run(inspector: Inspector, bytes: Uint8Array, cuts: number[] = []) {
  const ends = [...new Set(cuts.map((cut) => cut % (bytes.byteLength + 1)))].toSorted((one, other) => one - other)
  const out: Uint8Array[] = []
  let start = 0
  for (const end of [...ends, bytes.byteLength]) {
    out.push(Uint8Array.from(inspector.take(bytes.subarray(start, end))))
    start = end
  }
  out.push(Uint8Array.from(inspector.rest()))
  return { text: Buffer.concat(out), result: inspector.result() }
}

const cuts = fc.array(fc.nat(5_000), { maxLength: 12 })
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
const nothingMore = { cachedTokens: null, reasoningTokens: null, costNanodollars: null }
const counts = { promptTokens: 3, completionTokens: 4, totalTokens: 7, ...nothingMore }
const content = fc.string({ unit: 'binary', maxLength: 40 })

describe('a JSON answer', () => {
  test('goes through byte by byte and gives model and counts, however it is cut', () => {
    fc.assert(
      fc.property(content, cuts, fc.boolean(), (text, pieces, isPretty) => {
        const answer = { model: 'm', choices: [{ message: { content: text } }], usage }
        const bytes = Buffer.from(JSON.stringify(answer, null, isPretty ? 2 : 0))
        expect(run(inspectJson(), bytes, pieces)).toEqual({ text: bytes, result: { model: 'm', counts } })
      }),
    )
  })

  test('that is not JSON passes too, without counts', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), cuts, (bytes, pieces) => {
        const { text, result } = run(inspectJson(), bytes, pieces)
        expect(new Uint8Array(text)).toEqual(Uint8Array.from(bytes))
        expect(result.counts).toBeUndefined()
      }),
    )
  })

  test('never gives away its last byte before the rest is asked for', () => {
    const inspector = inspectJson()
    const bytes = Buffer.from(JSON.stringify({ model: 'm', usage }))
    expect(Buffer.from(inspector.take(bytes))).toHaveLength(0)
    expect(Buffer.from(inspector.rest())).toEqual(bytes)
  })

  const long = 'x'.repeat(9 * 1024 * 1024)
  for (const [name, answer, expected] of [
    ['at its end', { data: long, usage }, counts],
    ['at its beginning', { model: 'm', usage, data: long }, counts],
  ] as const)
    test(`of more than 8 MiB goes through, with its usage ${name}`, () => {
      const bytes = Buffer.from(JSON.stringify(answer))
      for (const pieces of [[10, 1_000_000, 9_000_000], [bytes.byteLength - 10]]) {
        const { text, result } = run(inspectJson(), bytes, pieces)
        expect(text.equals(bytes)).toBe(true)
        expect({ pieces, counts: result.counts }).toEqual({ pieces, counts: expected })
      }
    })

  const echoed = { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }
  for (const [name, answer] of [
    ['in the middle', { a: long, usage, z: long }],
    ['in front of one that the caller chose', { usage, metadata: long, user: echoed }],
    ['behind one that the caller chose', { metadata: long, user: echoed, usage }],
    ['in front of the log probabilities of the prompt', { usage, prompt_logprobs: Array(300_000).fill({ 1: -0.125 }) }],
  ] as const)
    test(`too long to be kept, with its usage ${name}, gives the counts of that`, () => {
      const bytes = Buffer.from(JSON.stringify({ model: 'm', ...answer }))
      for (const pieces of [[], [10, 1_000_000], Array.from({ length: 18 }, (_, at) => at * 1_000_003)]) {
        const { text, result } = run(inspectJson(), bytes, pieces)
        expect(text.equals(bytes)).toBe(true)
        expect(result).toEqual({ model: 'm', counts })
      }
    })

  test('that begins with a byte order mark is read', () => {
    const bytes = Buffer.from(`\ufeff${JSON.stringify({ model: 'm', usage })}`)
    expect(run(inspectJson(), bytes)).toEqual({ text: bytes, result: { model: 'm', counts } })
  })

  const odd: [name: string, usage: unknown, expected: object | undefined][] = [
    ['none', undefined, undefined],
    ['null', null, undefined],
    ['a number', 7, undefined],
    ['empty', {}, undefined],
    [
      'of embeddings, without completion',
      { prompt_tokens: 3, total_tokens: 3 },
      { promptTokens: 3, completionTokens: null, totalTokens: 3 },
    ],
    [
      'with a negative count',
      { prompt_tokens: -1, total_tokens: 3 },
      { promptTokens: null, completionTokens: null, totalTokens: 3 },
    ],
    ['with a fraction', { prompt_tokens: 1.5 }, undefined],
    ['with a text', { prompt_tokens: '3' }, undefined],
    ['with a count beyond what a number holds', { total_tokens: 2 ** 60 }, undefined],
    ['with a count that no answer has', { total_tokens: 2_000_000_000 }, undefined],
    [
      'of zero',
      { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
      { promptTokens: 0, completionTokens: 0, totalTokens: 0 },
    ],
  ]
  const dialects: typeof odd = [
    [
      'of chat completions in full',
      {
        ...usage,
        prompt_tokens_details: { cached_tokens: 2 },
        completion_tokens_details: { reasoning_tokens: 1 },
        cost: 0.000_012_5,
      },
      { ...counts, cachedTokens: 2, reasoningTokens: 1, costNanodollars: 12_500 },
    ],
    [
      'of responses',
      {
        input_tokens: 3,
        output_tokens: 4,
        total_tokens: 7,
        input_tokens_details: { cached_tokens: 2 },
        output_tokens_details: { reasoning_tokens: 1 },
      },
      { ...counts, cachedTokens: 2, reasoningTokens: 1 },
    ],
    [
      'of messages, whose cached input is counted apart',
      { input_tokens: 1, cache_read_input_tokens: 2, cache_creation_input_tokens: 0, output_tokens: 4 },
      { ...counts, cachedTokens: 2 },
    ],
    ['with an invalid cost', { ...usage, cost: -1, prompt_tokens_details: null }, counts],
    ['with the highest cost', { ...usage, cost: 1_000 }, { ...counts, costNanodollars: 1_000_000_000_000 }],
    ['with a cost above the highest', { ...usage, cost: 1_000.000_001 }, counts],
    ['with a cost as a text', { ...usage, cost: '1' }, counts],
    [
      'with the highest count',
      { total_tokens: 1_000_000_000 },
      { promptTokens: null, completionTokens: null, totalTokens: 1_000_000_000 },
    ],
    ['with a count above the highest', { total_tokens: 1_000_000_001 }, undefined],
  ]
  odd.push(...dialects)
  for (const [name, given, expected] of odd) {
    test(`with usage ${name} gives ${expected === undefined ? 'no counts' : 'the valid counts'}`, () => {
      const { counts } = run(inspectJson(), Buffer.from(JSON.stringify({ usage: given }))).result
      expect(counts).toEqual(expected === undefined ? undefined : ({ ...nothingMore, ...expected } as never))
    })
  }
})

type Chunk = { model?: string; choices: unknown[]; usage?: unknown }
const delta = content.map((text): Chunk => ({ model: 'm', choices: [{ delta: { content: text } }] }))
const lineEnd = fc.constantFrom('\n', '\r\n', '\r')
const usageChunk: Chunk = { model: 'm', choices: [], usage }
const eventOf = (chunk: Chunk, end = '\n') => `data: ${JSON.stringify(chunk)}${end}${end}`
const done = (end = '\n') => `data: [DONE]${end}${end}`

describe('an event stream', () => {
  test('goes through byte by byte and gives model and counts, however it is cut, when the usage was asked for', () => {
    fc.assert(
      fc.property(fc.array(delta, { minLength: 1, maxLength: 5 }), cuts, lineEnd, (deltas, pieces, end) => {
        const bytes = Buffer.from([...deltas, usageChunk].map((chunk) => eventOf(chunk, end)).join('') + done(end))
        expect(run(inspectEvents({ withholdsUsage: false }), bytes, pieces)).toEqual({
          text: bytes,
          result: { model: 'm', counts },
        })
      }),
    )
  })

  test('loses exactly the usage event when it was not asked for', () => {
    fc.assert(
      fc.property(fc.array(delta, { minLength: 1, maxLength: 5 }), cuts, lineEnd, (deltas, pieces, end) => {
        const before = deltas.map((chunk) => eventOf(chunk, end)).join('')
        const { text, result } = run(
          inspectEvents({ withholdsUsage: true }),
          Buffer.from(before + eventOf(usageChunk, end) + done(end)),
          pieces,
        )
        expect(text.toString()).toBe(before + done(end))
        expect(result).toEqual({ model: 'm', counts })
      }),
    )
  })

  const kept: [name: string, event: string, expected?: object][] = [
    ...[
      { index: 0, delta: { content: 'x' } },
      { index: 0, delta: { role: 'assistant', content: '' } },
      { index: 0, delta: { tool_calls: [{ index: 0 }] } },
      { index: 0, delta: {}, finish_reason: 'stop' },
      { index: 0, delta: {}, logprobs: { content: [{ token: 'x' }] } },
      { index: 0, text: 'x' },
      1,
    ].map((choice): [string, string, object] => [
      `usage beside a choice that says something: ${JSON.stringify(choice)}`,
      eventOf({ choices: [{ index: 1, delta: {} }, choice], usage }),
      counts,
    ]),
    ['usage null on every event', eventOf({ choices: [{ delta: { content: 'x' } }], usage: null })],
    ['no choices and no usage', eventOf({ choices: [] })],
    ['a comment', ': keep-alive\n\n'],
    ['another event', 'event: ping\ndata: {"type":"ping"}\n\n'],
    ['an error', 'data: {"error":{"message":"usage exceeded"}}\n\n'],
    [
      'content that looks like a usage event',
      eventOf({ choices: [{ delta: { content: JSON.stringify(usageChunk) } }] }),
    ],
    ['data that is no JSON', 'data: "usage" {\n\n'],
    ['bytes that are not UTF-8', 'data: \xff\xfe\n\n'],
  ]
  for (const [name, event, expected] of kept) {
    test(`keeps ${name}, though the usage was not asked for`, () => {
      const bytes = Buffer.from(event + done(), 'latin1')
      const { text, result } = run(inspectEvents({ withholdsUsage: true }), bytes)
      expect(text).toEqual(bytes)
      expect(result.counts).toEqual(expected as never)
    })
  }

  test.each([
    [[{ index: 0, delta: {} }]],
    [[{ index: 0, delta: { role: null, content: '', tool_calls: [] }, finish_reason: null, logprobs: null }]],
    [
      [
        { index: 0, delta: {} },
        { index: 1, delta: {} },
      ],
    ],
    [[{ index: 0, text: '', finish_reason: null }]],
    [[{ index: 0 }]],
  ])('withholds a usage event whose choices say nothing: %j', (choices) => {
    const event = eventOf({ model: 'm', choices, usage })
    expect(run(inspectEvents({ withholdsUsage: true }), Buffer.from(event + done()))).toEqual({
      text: Buffer.from(done()),
      result: { model: 'm', counts },
    })
    expect(run(inspectEvents({ withholdsUsage: false }), Buffer.from(event)).text.toString()).toBe(event)
  })

  test('reads a usage event of several data lines and without a space after the colon', () => {
    const event = `id: 1\ndata:{"choices":[],\ndata:"usage":${JSON.stringify(usage)}}\n\n`
    expect(run(inspectEvents({ withholdsUsage: true }), Buffer.from(event))).toEqual({
      text: Buffer.of(),
      result: { model: undefined, counts },
    })
  })

  test('ends an event at an empty line, however its two ends are written', () => {
    for (const end of ['\n\n', '\r\n\r\n', '\r\r', '\n\r\n', '\r\n\n']) {
      const inspector = inspectEvents({ withholdsUsage: true })
      const released = Buffer.from(inspector.take(Buffer.from(`data: {"a":1}${end}data: next`))).toString()
      expect({ end, released }).toEqual({ end, released: `data: {"a":1}${end}` })
    }
  })

  test('withholds the usage event also where the stream ends without a blank line', () => {
    const { text, result } = run(inspectEvents({ withholdsUsage: true }), Buffer.from(eventOf(usageChunk).trimEnd()))
    expect(text).toHaveLength(0)
    expect(result.counts).toEqual(counts)
  })

  test('gives every event away as soon as it is whole', () => {
    const inspector = inspectEvents({ withholdsUsage: true })
    expect(Buffer.from(inspector.take(Buffer.from('data: {"a":1}\n'))).toString()).toBe('')
    expect(Buffer.from(inspector.take(Buffer.from('\ndata: '))).toString()).toBe('data: {"a":1}\n\n')
  })

  test('of responses ends with its last event, and has the usage of the whole response', () => {
    const created = eventOf({ type: 'response.created', response: { model: 'm', usage: null } } as never)
    const delta = eventOf({ type: 'response.output_text.delta', delta: 'response.completed' } as never)
    const completed = eventOf({
      type: 'response.completed',
      response: { model: 'm', usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 } },
    } as never)
    const inspector = inspectEvents({ withholdsUsage: false })
    inspector.take(Buffer.from(created + delta))
    expect([inspector.isFinal(), inspector.isWhole()]).toEqual([false, false])
    inspector.take(Buffer.from(completed))
    expect([inspector.isFinal(), inspector.isWhole(), inspector.result()]).toEqual([true, true, { model: 'm', counts }])
  })

  test('of messages merges the usage of its first event with that of its last', () => {
    const start = eventOf({
      type: 'message_start',
      message: { model: 'm', usage: { input_tokens: 3, output_tokens: 1 } },
    } as never)
    const delta = eventOf({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: { output_tokens: 4 },
    } as never)
    const inspector = inspectEvents({ withholdsUsage: false })
    inspector.take(Buffer.from(start + delta))
    expect(inspector.isWhole()).toBe(false)
    inspector.take(Buffer.from(`event: message_stop\n${eventOf({ type: 'message_stop' } as never)}`))
    expect([inspector.isFinal(), inspector.result()]).toEqual([true, { model: 'm', counts }])
  })

  test('is final from [DONE] on, and not before', () => {
    const inspector = inspectEvents({ withholdsUsage: true })
    inspector.take(Buffer.from(`${eventOf({ choices: [{ delta: { content: '[DONE]' } }] })}${eventOf(usageChunk)}`))
    expect(inspector.isFinal()).toBe(false)
    inspector.take(Buffer.from(done()))
    expect(inspector.isFinal()).toBe(true)
  })

  describe('has its usage due', () => {
    const isDueAfter = (text: string) => {
      const inspector = inspectEvents({ withholdsUsage: true })
      // The model is known, so that an event may be passed on unread.
      inspector.take(Buffer.from(eventOf({ model: 'm', choices: [{ delta: { content: 'x' } }] })))
      inspector.take(Buffer.from(text))
      return inspector.isUsageDue()
    }
    const finish = (index: number, finish_reason: string | null = 'stop') =>
      eventOf({ choices: [{ index, delta: {}, finish_reason }] } as never)
    const typed = (type: string, more: object = {}) => eventOf({ type, ...more } as never)
    const start = typed('message_start', { message: { model: 'm', usage: { input_tokens: 3, output_tokens: 1 } } })

    test.each([
      [finish(0), true],
      [finish(0, 'length').replaceAll(':', ' : ').replace('data : ', 'data: '), true],
      [finish(0, null), false],
      [eventOf({ choices: [{ delta: { content: '"finish_reason":"stop"' } }] }), false],
      // How many choices a request asks for is no matter: the upstream may give fewer.
      [finish(1), true],
      [eventOf({ choices: [0, 1].map((index) => ({ index, delta: {}, finish_reason: 'stop' })) }), true],
      [finish(0) + eventOf(usageChunk), false],
      [finish(0) + done(), false],
      [eventOf({ choices: [{ index: 0, finish_reason: 'stop' }], usage }), false],
      ['data: {"choices":[null,{"finish_reason":"stop"}]}\n\n', true],
      ['data: {"choices":"finish_reason","finish_reason":"stop"}\n\n', false],
      // Responses
      [typed('response.output_text.delta', { delta: 'output_text.done' }), false],
      [typed('response.output_text.done', { text: 'x' }), true],
      [typed('response.content_part.done'), true],
      [typed('response.output_item.done'), true],
      [typed('response.output_text.done') + typed('response.completed', { response: { usage } }), false],
      // Messages, whose first event has counts that are not the last
      [start, false],
      [start + typed('content_block_stop', { index: 0 }), true],
      [start + typed('content_block_stop') + typed('message_delta', { usage: { output_tokens: 4 } }), false],
      [start + typed('content_block_stop') + typed('message_stop'), false],
    ])('after %j: %p', (text, isDue) => expect(isDueAfter(text)).toBe(isDue))

    test('until its end, where the answer is JSON', () => {
      const inspector = inspectJson()
      inspector.take(Buffer.from(JSON.stringify({ choices: [{ finish_reason: 'stop' }] })))
      expect(inspector.isUsageDue()).toBe(true)
    })
  })

  describe('with an event that is too long to be kept', () => {
    const long = 'x'.repeat(2 * 1024 * 1024)
    const echoed = { usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 } }
    const real = { input_tokens: 3, output_tokens: 4, total_tokens: 7 }
    const completed = (response: object) => JSON.stringify({ type: 'response.completed', response })
    const events: [name: string, data: string][] = [
      ['whose usage is behind the metadata', completed({ model: 'm', metadata: { long }, usage: real })],
      ['with another usage behind', completed({ model: 'm', usage: real, metadata: long, user: echoed })],
      ['with another usage in front', completed({ model: 'm', metadata: long, user: echoed, usage: real })],
      ['over several lines', completed({ model: 'm', usage: real, a: [long, long] }).replaceAll(',', ',\ndata:')],
    ]
    for (const [name, data] of events)
      for (const end of ['\n', '\r\n', '\r'])
        test(`${name} (${JSON.stringify(end)})`, () => {
          const before = eventOf({ type: 'response.created', response: { model: 'm' } } as never, end)
          const lines = `event: response.completed\ndata: ${data}\n\n`.replaceAll('\n', end)
          const bytes = Buffer.from(before + lines + eventOf({ type: 'after' } as never, end))
          const behind = before.length + lines.length
          for (const pieces of [
            [],
            [1_100_000, behind - 1, behind],
            Array.from({ length: 50 }, (_, at) => at * 99_991),
          ]) {
            const inspector = inspectEvents({ withholdsUsage: true })
            const { text, result } = run(inspector, bytes, pieces)
            expect(text.equals(bytes)).toBe(true)
            expect(result).toEqual({ model: 'm', counts })
            expect(inspector.isFinal()).toBe(true)
          }
        })

    test('it ends at its blank line, and the next event is withheld as ever', () => {
      const first = eventOf({ model: 'm', choices: [{ delta: { content: long } }] })
      const bytes = Buffer.from(first + eventOf(usageChunk) + done())
      for (const pieces of [[1_500_000], [1_500_000, first.length - 1], [1_500_000, first.length]]) {
        const { text, result } = run(inspectEvents({ withholdsUsage: true }), bytes, pieces)
        expect(text.toString()).toBe(first + done())
        expect(result.counts).toEqual(counts)
      }
    })

    test('that the stream breaks off in, it still has the usage that came', () => {
      const data = completed({ model: 'm', usage: real, metadata: long })
      const { result } = run(inspectEvents({ withholdsUsage: true }), Buffer.from(`data: ${data}`), [1_500_000])
      expect(result.counts).toEqual(counts)
    })
  })

  test('with a line of megabytes goes through without being collected', () => {
    const bytes = Buffer.from(`data: ${'x'.repeat(3 * 1024 * 1024)}\n\n${eventOf(usageChunk)}${done()}`)
    const pieces = Array.from({ length: 48 }, (_, at) => at * 64 * 1024)
    const { text, result } = run(inspectEvents({ withholdsUsage: false }), bytes, pieces)
    expect(text.equals(bytes)).toBe(true)
    expect(result.counts).toEqual(counts)
  })

  test('of any bytes goes through as it came when nothing is withheld', () => {
    const piece = fc.oneof(
      fc.uint8Array(),
      fc.constantFrom('\n', '\r', '\n\n', '\r\n\r\n', 'data:', ': x').map((text) => Buffer.from(text)),
    )
    fc.assert(
      fc.property(fc.array(piece), cuts, (parts, pieces) => {
        const bytes = Buffer.concat(parts)
        expect(run(inspectEvents({ withholdsUsage: false }), bytes, pieces).text.equals(bytes)).toBe(true)
      }),
    )
  })
})

test.each([
  [{ error: { code: 'context_length_exceeded', type: 'invalid_request_error' } }, 'context_length_exceeded'],
  [{ error: { code: '429', type: 'rate_limit_error' } }, 'rate_limit_error'],
  [{ error: { code: 429, type: 'a message with spaces', metadata: { error_type: 'upstream_busy' } } }, 'upstream_busy'],
  [{ error: { type: 'x'.repeat(65) } }, undefined],
  [{ object: 'error', type: 'BadRequestError', code: 400 }, 'BadRequestError'],
  [{ type: 'BadRequestError' }, undefined],
])('the word of the error in %j is %p', (response, word) => {
  expect(errorWordOf(response)).toBe(word as never)
})
