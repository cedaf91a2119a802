// What a JSON text holds, counted without parsing it, held against what parsing finds; and its members changed with the others as they were.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseJsonObject } from '../../src/http/body.ts'
import { countMembers, withMembers } from '../../src/http/json-text.ts'
import { jsonLevelsMax, jsonMembersMax, jsonValuesMax } from '../../src/limits.ts'

const parse = (text: string, options = {}) => parseJsonObject(Buffer.from(text), options)
/** Texts that look like the end of a string, or like structure. */
const trap = fc.string({
  unit: fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', 'a', 'é', '😀', '\u2028'),
  maxLength: 60,
})
const value = fc.jsonValue({ depthSize: 'medium', stringUnit: 'binary' })
const object = fc.dictionary(trap, fc.oneof(value, trap, fc.array(trap), fc.dictionary(trap, trap)))
const indent = fc.constantFrom(undefined, 1, '\t')

describe('the members of the outermost object', () => {
  test('are counted, whatever stands in them', () => {
    fc.assert(
      fc.property(object, indent, (given, space) => {
        expect(countMembers(JSON.stringify(given, null, space))).toBe(Object.keys(given).length)
      }),
      { numRuns: 500 },
    )
  })

  test('of anything, JSON or not, are counted to the end', () => {
    fc.assert(fc.property(trap, (text) => expect(countMembers(text)).toBeNumber()))
  })

  const rows: [text: string, isTwice: boolean][] = [
    ['{"stream":true,"stream":false}', true],
    ['{"stream":true,"str\\u0065am":false}', true],
    ['{"a":1,"b":{"a":1},"c":[{"a":1}]}', false],
    ['{"__proto__":1,"constructor":2}', false],
    ['{"__proto__":1,"__proto__":2}', true],
    ['{"a":{"b":1,"b":2}}', false],
    [' {} ', false],
  ]
  for (const [text, isTwice] of rows)
    test(`${text} ${isTwice ? 'names one twice, and is refused' : 'names each once'}`, () => {
      expect(parse(text)).toBeObject()
      if (isTwice) expect(() => parse(text, { membersOnce: true })).toThrow('twice')
      else expect(parse(text, { membersOnce: true })).toEqual(JSON.parse(text))
    })
})

describe('a body', () => {
  const nested = (levels: number, open: string, close: string) => `{"x":${open.repeat(levels)}1${close.repeat(levels)}}`
  const many = (count: number, item: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => item(index)).join()
  const rows: [name: string, make: (beyond: number) => string, rule: string][] = [
    ['of nested lists', (beyond) => nested(jsonLevelsMax - 1 + beyond, '[', ']'), 'levels'],
    ['of nested objects', (beyond) => nested(jsonLevelsMax - 1 + beyond, '{"a":', '}'), 'levels'],
    ['of numbers', (beyond) => `{"x":[${many(jsonValuesMax - 1 + beyond, () => '1')}]}`, 'values'],
    ['of members', (beyond) => `{${many(jsonMembersMax + beyond, (index) => `"k${index}":1`)}}`, 'members'],
  ]
  for (const [name, make, rule] of rows)
    test(`${name} passes at its bound and not beyond`, () => {
      expect(parse(make(0), { membersOnce: true })).toBeObject()
      expect(() => parse(make(1))).toThrow(rule)
    })

  const megabytes = 31 * 1024 * 1024
  const hostile: [name: string, text: string, code: 'taken' | 'refused'][] = [
    ['of objects without end', '{"a":'.repeat(megabytes / 5), 'refused'],
    ['of lists without end', `{"x":${'['.repeat(megabytes)}`, 'refused'],
    ['of empty objects', `{"x":[${'{},'.repeat(megabytes / 3)}{}]}`, 'refused'],
    ['of many members', `{${many(2_000_000, (index) => `"k${index}":1`)}}`, 'refused'],
    ['of one long text', `{"x":"${'a'.repeat(megabytes)}"}`, 'taken'],
    ['of one text of escaped quotes', `{"x":"${'\\"'.repeat(megabytes / 2)}"}`, 'taken'],
    ['of one text of backslashes', `{"x":"${'\\\\'.repeat(megabytes / 2)}"}`, 'taken'],
    ['of many objects with members of their own', `{"x":[${many(199_000, (index) => `{"k${index}":1}`)}]}`, 'taken'],
  ]
  for (const [name, text, code] of hostile)
    test(`of 31 megabytes ${name} is ${code}`, () => {
      if (code === 'taken') expect(parse(text, { membersOnce: true })).toBeObject()
      else expect(() => parse(text, { membersOnce: true })).toThrow('at most')
    })
})

describe('a changed object', () => {
  test('is the old one with the new members, whatever stands in it', () => {
    fc.assert(
      fc.property(object, object, fc.array(trap), indent, (given, changes, gone, space) => {
        const names = [...gone, ...Object.keys(given).slice(0, 1)]
        const all = { ...changes, ...Object.fromEntries(names.map((name) => [name, undefined])) }
        const expected = JSON.parse(JSON.stringify(Object.assign(Object.create(null), given, all))) as object
        expect(JSON.parse(withMembers(JSON.stringify(given, null, space), all))).toEqual(expected)
      }),
      { numRuns: 500 },
    )
  })

  const rows: [json: string, changes: Record<string, unknown>, changed: string][] = [
    [
      '{"models":["a"],"seed":9223372036854775807,"x":1e400 }',
      { models: undefined, model: 'a' },
      '{"seed":9223372036854775807,"x":1e400 ,"model":"a"}',
    ],
    ['{"y":1.0,"z":-0,"model":"b"}', { model: 'a' }, '{"y":1.0,"z":-0,"model":"a"}'],
    ['{"mod\\u0065l":"b", "y":[1.0]}', { model: 'a' }, '{ "y":[1.0],"model":"a"}'],
    [' { } ', { model: 'a' }, '{"model":"a"}'],
    ['{"a":{"a":1,"b":[{"a":1}]},"b":2}', { b: undefined }, '{"a":{"a":1,"b":[{"a":1}]}}'],
  ]
  for (const [json, changes, changed] of rows)
    test(`${json} becomes ${changed}`, () => expect(withMembers(json, changes)).toBe(changed))
})
