// The usage of a JSON text that is too long to be parsed: the scanner finds what JSON.parse finds, however the bytes are
// cut.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { countsOf, modelOf, usageOf } from '../../src/inference/usage.ts'
import { createUsageScanner } from '../../src/inference/usage-scanner.ts'

type Fields = Record<string, unknown>

function scan(text: string | Uint8Array, cuts: number[] = []): Fields {
  const bytes = Buffer.from(text)
  const scanner = createUsageScanner()
  let start = 0
  for (const end of [
    ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((one, other) => one - other),
    bytes.length,
  ]) {
    scanner.take(Uint8Array.from(bytes.subarray(start, end)))
    start = end
  }
  return scanner.result()
}

const said = (fields: Fields) => ({ usage: usageOf(fields), model: modelOf(fields), type: fields.type ?? undefined })
const parsed = (text: string) => said(JSON.parse(text) as Fields)

/** Every character as it is, or escaped. */
const nameText = fc
  .tuple(
    fc.constantFrom(
      'usage',
      'model',
      'type',
      'response',
      'message',
      'user',
      '',
      '\\',
      '"',
      'é',
      '😀',
      'responseresponse',
    ),
    fc.array(fc.boolean(), { minLength: 16, maxLength: 16 }),
  )
  .map(([name, isEscaped]) => {
    const units = Array.from({ length: name.length }, (_, at) => name[at] ?? '')
    const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
    const plain = (unit: string) => JSON.stringify(unit).slice(1, -1)
    return `"${units.map((unit, at) => (isEscaped[at] === true ? escaped(unit) : plain(unit))).join('')}"`
  })
const space = fc.constantFrom('', '', ' ', '\n\t', '\r\n')
/** A JSON text that repeats members, as a text can and a value cannot. */
const { json } = fc.letrec<{ json: string; object: string; list: string; leaf: string }>((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom('null', 'true', '0', '-1.5e3', '{}', '[]', '"usage"', '"\\\\"', '"\\""', '"a{[b"', '"}]"'),
    fc.string({ unit: 'binary', maxLength: 30 }).map((text) => JSON.stringify(text)),
    fc.nat(9).map((count) => `{"total_tokens":${count}}`),
  ),
  list: fc.array(tie('json'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
  object: fc
    .array(fc.tuple(space, nameText, space, space, tie('json'), space), { maxLength: 5 })
    .map((members) => members.map(([a, name, b, c, value, d]) => `${a}${name}${b}:${c}${value}${d}`).join(','))
    .map((members) => `{${members}}`),
  json: fc.oneof({ maxDepth: 4, depthIdentifier: 'json' }, tie('leaf'), tie('object'), tie('object'), tie('list')),
}))

test('finds in any JSON object what JSON.parse finds, however it is cut', () => {
  const outer = fc
    .tuple(
      space,
      json.filter((text) => text.startsWith('{')),
    )
    .map(([before, text]) => before + text)
  fc.assert(
    fc.property(outer, fc.array(fc.nat(2_000), { maxLength: 20 }), (text, cuts) => {
      expect(said(scan(text, cuts))).toEqual(parsed(text))
    }),
    { numRuns: 3_000, seed: 26 },
  )
})

const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
const other = { total_tokens: 1 }
const counted = JSON.stringify(usage)

describe('byte by byte', () => {
  test.each([
    ['the last of two', `{"usage":${JSON.stringify(other)},"usage":${counted}}`],
    ['a name with escapes', `{"us\\u0061ge":${counted}}`],
    ['an echoed one in front', `{"user":{"usage":{"total_tokens":9}},"usage":${counted}}`],
    ['an echoed one behind', `{"usage":${counted},"user":{"usage":{"total_tokens":9}}}`],
    ['one in a list', `{"x":[{"usage":{"total_tokens":9}}],"usage":${counted}}`],
    ['one in a string', `{"x":"\\"usage\\":{\\"total_tokens\\":9}","usage":${counted}}`],
    ['one of a response', `{"type":"response.completed","response":{"metadata":{"usage":1},"usage":${counted}}}`],
    ['one of a message', `{"type":"message_start","message":{"usage":${counted},"content":[]}}`],
    ['a response that is repeated', `{"response":{"usage":{"total_tokens":9}},"response":{"usage":${counted}}}`],
    ['a response that is null', `{"response":null,"message":{"usage":${counted}}}`],
    ['a byte order mark', `\ufeff {"usage":${counted}}`],
  ])('%s', (_, text) => {
    const cuts = Array.from({ length: text.length + 4 }, (_, at) => at)
    expect(usageOf(scan(text, cuts))).toEqual(usage)
    expect(usageOf(scan(text))).toEqual(usage)
  })
})

describe('finds nothing', () => {
  test.each([
    ['in a list', `[{"usage":${counted}}]`],
    ['in a list named usage', `{"usage":[${counted}].length}`],
    ['in a response that is a list', `{"response":[{"usage":${counted}}]}`],
    ['two levels down', `{"response":{"response":{"usage":${counted}}}}`],
    ['behind the object', `{} {"usage":${counted}}`],
    ['in a text that ends early', `{"usage":{"total_tokens":7`],
    ['in what is no JSON', `"usage":${counted}`],
    ['in a usage longer than any', `{"usage":{"total_tokens":7,"x":"${'x'.repeat(10_000)}"}}`],
    ['under the longer name', `{"${'usage'.repeat(20)}":${counted}}`],
  ])('%s', (_, text) => {
    for (const cuts of [[], [1, 9, 20], Array.from({ length: 200 }, (_, at) => at)])
      expect(countsOf(usageOf(scan(text, cuts)))).toBeUndefined()
  })
})

test('reads behind a string of megabytes and thousands of levels', () => {
  const deep = `${'[{"usage":'.repeat(100_000)}0${'}]'.repeat(100_000)}`
  const text = `{"a":"${'x\\"'.repeat(1_000_000)}","b":${deep},"usage":${counted}}`
  expect(usageOf(scan(text, [70_000, 1_000_001, 3_000_000, 4_100_000]))).toEqual(usage)
})
