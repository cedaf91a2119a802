// Where a JSON text breaks the rules: the place and what was expected, for any text that a parser refuses, and nothing of what the text says.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseJsonObject } from '../../src/http/body.ts'
import { findJsonProblem, findRepeatedMember } from '../../src/http/json-problem.ts'

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

describe('the first problem', () => {
  const rows: [text: string, line: number, column: number, rule: string][] = [
    ['', 1, 1, 'expected {, but the text ends'],
    ['a=b&c=d', 1, 1, 'expected {'],
    ['{"a":1,}', 1, 8, 'expected a name in double quotes'],
    ["{'a':1}", 1, 2, 'expected a name in double quotes, or }, not single quotes'],
    ['{"a" 1}', 1, 6, 'expected a colon'],
    ['{"a":}', 1, 6, 'expected a value'],
    ['{"a":NaN}', 1, 6, 'expected a value'],
    ['{"a":01}', 1, 7, 'expected a comma or }'],
    ['{"a":[1 2]}', 1, 9, 'expected a comma or ]'],
    ['{"a":[1,]}', 1, 9, 'expected a value'],
    ['{"a":[', 1, 7, 'expected a value, or ], but the text ends'],
    ['{\r\n  "a": 1\r\n  "b": 2\r\n}', 3, 3, 'expected a comma or }'],
    ['{"a":"x', 1, 6, 'expected a double quote at the end of the text that begins here'],
    ['{"a":"x\ny"}', 1, 8, 'expected an escape, such as \\n, in place of a control character'],
    ['{"a":"\\x"}', 1, 7, 'expected \\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u and four hex digits'],
    ['{}}', 1, 3, 'expected nothing after the last }'],
    ['\ufeff{}', 1, 1, 'remove the byte order mark'],
  ]
  for (const [text, line, column, rule] of rows)
    test(`of ${JSON.stringify(text)} is in line ${line}, column ${column}: ${rule}`, async () => {
      expect(await findJsonProblem(text)).toEqual({ line, column, rule })
    })

  test('is found in any text that a parser refuses, and in no other', () => {
    const marks = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      'x',
      '1',
      '-',
      '.',
      ' ',
      '\n',
      'true',
      '\u0001',
    )
    const damaged = fc
      .tuple(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(), fc.nat({ max: 2 }), marks)
      .map(([value, at, removed, mark]) => {
        const text = JSON.stringify(value)
        const from = at % (text.length + 1)
        return text.slice(0, from) + (removed === 2 ? '' : mark) + text.slice(from + removed)
      })
    return fc.assert(
      fc.asyncProperty(
        fc.oneof(
          damaged,
          fc.array(marks, { maxLength: 8 }).map((all) => `{"a":${all.join('')}}`),
        ),
        async (text) => {
          const problem = await findJsonProblem(text)
          expect({ text, isRefused: problem !== undefined }).toEqual({ text, isRefused: !isJsonObject(text) })
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test('shows nothing of the text', async () => {
    for (const text of ['{"a":secret}', '{"a":"secret', '{secret:1}', '{"secret" 1}', 'secret'])
      expect((await findJsonProblem(text))?.rule).not.toContain('secret')
  })

  const megabytes = 31 * 1024 * 1024
  test.each([
    ['one text', () => `{"x":"${'a'.repeat(megabytes)}`],
    ['escapes', () => `{"x":"${'\\n'.repeat(megabytes / 2)}`],
    ['spaces', () => `{${' '.repeat(megabytes)}`],
    ['digits', () => `{"x":${'1'.repeat(megabytes)}x`],
  ])('of 31 megabytes of %s is found', async (_, text) => {
    await expect(parseJsonObject(Buffer.from(text()))).rejects.toThrow(/: line 1, column \d+: expected /)
  })
})

describe('a member that is named twice', () => {
  const rows: [text: string, outermost: string | undefined, anywhere: string | undefined][] = [
    ['{"a":1,"b":2,"a":3}', 'a', 'a'],
    ['{"stream":true,"str\\u0065am":false}', 'stream', 'stream'],
    ['{"a":{"b":1,"b":2}}', undefined, 'b'],
    ['{"a":{"b":1},"c":[{"b":1},{"b":2}],"b":3}', undefined, undefined],
    ['{"__proto__":1,"__proto__":2}', '__proto__', '__proto__'],
    ['{}', undefined, undefined],
  ]
  for (const [text, outermost, anywhere] of rows)
    test(`in ${text} is ${anywhere ?? 'none'}`, async () => {
      expect((await findRepeatedMember(text, 'outermost'))?.name).toBe(outermost)
      expect((await findRepeatedMember(text, 'anywhere'))?.name).toBe(anywhere)
    })

  const refusal = (text: string) => parseJsonObject(Buffer.from(text), { membersOnce: true })
  test('is named in the refusal, with its place', async () => {
    const message = 'The body names the member "stream" twice in one object (line 2, column 1): send each member once'
    await expect(refusal('{"stream":true,\n"stream":false}')).rejects.toThrow(message)
  })

  test('is not shown where it is long, nor a credential in it', async () => {
    const long = 'x'.repeat(65)
    await expect(refusal(`{"${long}":1,"${long}":2}`)).rejects.toThrow('The body names a member twice in one object (')
    const key = `sk-lk-v1-${'0'.repeat(32)}`
    await expect(refusal(`{"${key}":1,"${key}":2}`)).rejects.toThrow('the member "sk-lk-v1-…" twice')
  })
})
