// What a JSON text holds, counted without parsing it, held against what parsing finds; and its members changed with the others as they were.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseJsonObject } from '../../src/http/body.ts'
import { outlineJson, withMembers } from '../../src/http/json-text.ts'
import { jsonLevelsMax, jsonMembersMax, jsonOutermostMembersMax, jsonValuesMax } from '../../src/limits.ts'

const parse = async (text: string, options = {}) => (await parseJsonObject(Buffer.from(text), options)).fields
/** Texts that look like the end of a string, or like structure. */
const trap = fc.string({
  unit: fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', 'a', 'é', '😀', '\u2028'),
  maxLength: 60,
})
const value = fc.jsonValue({ depthSize: 'medium', stringUnit: 'binary' })
const object = fc.dictionary(trap, fc.oneof(value, trap, fc.array(trap), fc.dictionary(trap, trap)))
const indent = fc.constantFrom(undefined, 1, '\t')

/** As many as all objects in a value have. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const own = Array.isArray(value) ? 0 : Object.keys(value).length
  return Object.values(value).reduce((sum: number, item) => sum + countMembers(item), own)
}

describe('the members of the outermost object', () => {
  test('are found with their values in any object', () =>
    fc.assert(
      fc.asyncProperty(object, indent, async (given, space) => {
        const json = Buffer.from(JSON.stringify(given, null, space))
        const { members, membersInAll } = await outlineJson(json)
        const found = members.map(({ start, colon, end }) =>
          [json.subarray(start, colon), json.subarray(colon + 1, end)].map((part) => JSON.parse(part.toString())),
        )
        // Of names that are numbers, an object changes the order.
        expect(found.map(([name]) => name).toSorted()).toEqual(Object.keys(given).toSorted())
        for (const [name, value] of found) expect(value).toEqual(JSON.parse(JSON.stringify(given[name])))
        expect(membersInAll).toBe(countMembers(JSON.parse(json.toString())))
      }),
      { numRuns: 500 },
    ))

  test('of anything, JSON or not, are looked for to the end', () =>
    fc.assert(
      fc.asyncProperty(trap, async (text) => expect((await outlineJson(Buffer.from(text))).membersInAll).toBeNumber()),
    ))

  test('are the same wherever a slice or a search begins', () => {
    const long = fc.array(fc.constantFrom('x'.repeat(62), 'x'.repeat(64), 'x', '"', '\\', 'é'), { maxLength: 12 })
    const texts = fc.dictionary(
      trap,
      long.map((parts) => parts.join('')),
    )
    return fc.assert(
      fc.asyncProperty(texts, fc.integer({ min: 1, max: 80 }), async (given, sliceBytes) => {
        const json = Buffer.from(JSON.stringify(given))
        expect(await outlineJson(json, sliceBytes)).toEqual(await outlineJson(json))
        expect(await parse(json.toString(), { membersOnce: true })).toEqual(given)
      }),
      { numRuns: 500 },
    )
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
    test(`${text} ${isTwice ? 'names one twice, and is refused' : 'names each once'}`, async () => {
      expect(await parse(text)).toBeObject()
      const read: unknown = await parse(text, { membersOnce: true }).catch(String)
      expect(read).toEqual(isTwice ? expect.stringContaining('twice') : JSON.parse(text))
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
    ['of members', (beyond) => `{"x":{${many(jsonMembersMax - 1 + beyond, (index) => `"k${index}":1`)}}}`, 'in all'],
    [
      'of members of its outermost object',
      (beyond) => `{${many(jsonOutermostMembersMax + beyond, (index) => `"k${index}":1`)}}`,
      'outermost object',
    ],
  ]
  for (const [name, make, rule] of rows)
    test(`${name} passes at its bound and not beyond`, async () => {
      expect(await parse(make(0), { membersOnce: true })).toBeObject()
      await expect(parse(make(1))).rejects.toThrow(rule)
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
    ['of the members of many objects', `{"x":[${many(199_000, (index) => `{"k${index}":1}`)}]}`, 'taken'],
  ]
  for (const [name, text, code] of hostile)
    test(`of 31 megabytes ${name} is ${code}`, async () => {
      const outcome = await parse(text, { membersOnce: true }).then((read) => typeof read, String)
      expect(outcome).toMatch(code === 'taken' ? /^object$/ : /at most/)
    })
})

describe('a changed object', () => {
  const change = async (json: string, values: Record<string, unknown>, prepended?: Record<string, unknown[]>) => {
    const bytes = Buffer.from(json)
    return Buffer.from(withMembers(bytes, await outlineJson(bytes), { values, prepended })).toString()
  }

  test('is the old one with the new members, for any object', () =>
    fc.assert(
      fc.asyncProperty(object, object, fc.array(trap), indent, async (given, changes, gone, space) => {
        const names = [...gone, ...Object.keys(given).slice(0, 1)]
        const all = { ...changes, ...Object.fromEntries(names.map((name) => [name, undefined])) }
        const expected = JSON.parse(JSON.stringify(Object.assign(Object.create(null), given, all))) as object
        expect(JSON.parse(await change(JSON.stringify(given, null, space), all))).toEqual(expected)
      }),
      { numRuns: 500 },
    ))

  test('has the items before those of its lists, for any items', () =>
    fc.assert(
      fc.asyncProperty(object, trap, fc.array(value, { minLength: 1 }), indent, async (given, name, items, space) => {
        const lists = { ...given, [name]: [given] }
        const changed = await change(JSON.stringify(lists, null, space), {}, { [name]: items })
        const expected = JSON.parse(JSON.stringify({ ...lists, [name]: [...items, given] })) as object
        expect(JSON.parse(changed)).toEqual(expected)
      }),
    ))

  const rows: [json: string, changes: Record<string, unknown>, changed: string][] = [
    [
      '{"models":["a"],"seed":9223372036854775807,"x":1e400 }',
      { models: undefined, model: 'a' },
      '{"seed":9223372036854775807,"x":1e400 ,"model":"a"}',
    ],
    ['{"y":1.0,"z":-0,"model":"b"}', { model: 'a' }, '{"y":1.0,"z":-0,"model":"a"}'],
    ['{"mod\\u0065l":"b", "y":[1.0]}', { model: 'a' }, '{ "y":[1.0],"model":"a"}'],
    ['{"\\u006d\\u006f\\u0064\\u0065\\u006c":"b"}', { model: undefined }, '{}'],
    [' { } ', { model: 'a' }, '{"model":"a"}'],
    ['{"a":{"a":1,"b":[{"a":1}]},"b":2}', { b: undefined }, '{"a":{"a":1,"b":[{"a":1}]}}'],
  ]
  for (const [json, changes, changed] of rows)
    test(`${json} becomes ${changed}`, async () => expect(await change(json, changes)).toBe(changed))

  test('keeps the items of a list as they were written', async () => {
    const json = '{"x":1.0, "list" : [ 1e400,{"y":-0}],"z":2}'
    expect(await change(json, { z: 3 }, { list: [0] })).toBe('{"x":1.0, "list" :[0, 1e400,{"y":-0}],"z":3}')
  })
})
