// The text of a JWT against naive oracles: canonical base64url by decoding and encoding again, duplicate members by a slow parser.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { isCanonicalBase64url, namesMemberTwice, parseJwtText } from '../../src/tokens/jwt-text.ts'
import { encodePart } from '../support/subject-token.ts'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const survivesRoundTrip = (text: string) => text !== '' && Buffer.from(text, 'base64url').toString('base64url') === text

describe('canonical base64url', () => {
  test('is what a decode and encode leaves as it is, for any text', () => {
    const nearly = fc.string({ unit: fc.constantFrom(...alphabet, '=', '+', '/', ' ', '\n', '.', 'é'), maxLength: 12 })
    const all = fc.oneof(fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 12 }), nearly, fc.string())
    fc.assert(
      fc.property(all, (text) => {
        expect(isCanonicalBase64url(text)).toBe(survivesRoundTrip(text))
      }),
      { numRuns: 2_000 },
    )
  })

  test('has exactly one spelling for any bytes: no other last character is accepted', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 20 }), (bytes) => {
        const text = encodePart(bytes)
        const spellings = [...alphabet].map((last) => text.slice(0, -1) + last)
        const same = spellings.filter((other) => Buffer.from(other, 'base64url').equals(bytes))
        expect(same.filter(isCanonicalBase64url)).toEqual([text])
      }),
    )
  })
})

/** JSON with members in any order and number, written out by hand, and whether one object names a member twice. */
type Tree = { json: string; isDouble: boolean }
const name = fc.constantFrom('a', 'b', 'sub', '', '\u0000', '"', '\\', '{', ',', 'é', '😀', '__proto__')
const spelling = fc.tuple(name, fc.boolean()).map(([text, escapes]) => ({ text, json: spell(text, escapes) }))
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom('1', 'true', 'null', '-2.5e3').map((json): Tree => ({ json, isDouble: false })),
    spelling.map(({ json }): Tree => ({ json, isDouble: false })),
    fc.array(tie('tree'), { maxLength: 3 }).map(
      (entries): Tree => ({
        json: `[ ${entries.map(({ json }) => json).join(' , ')} ]`,
        isDouble: entries.some(({ isDouble }) => isDouble),
      }),
    ),
    fc.array(fc.tuple(spelling, tie('tree')), { maxLength: 4 }).map(
      (members): Tree => ({
        json: `{ ${members.map(([key, value]) => `${key.json} : ${value.json}`).join(' ,\n')} }`,
        isDouble:
          new Set(members.map(([key]) => key.text)).size < members.length ||
          members.some(([, { isDouble }]) => isDouble),
      }),
    ),
  ),
}))

function spell(text: string, escapes: boolean): string {
  if (!escapes) return JSON.stringify(text)
  return `"${[...Array(text.length).keys()].map((at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`
}

describe('a member named twice', () => {
  test('is found exactly when it is there, at any depth and in any spelling', () => {
    let doubles = 0
    fc.assert(
      fc.property(tree, ({ json, isDouble }) => {
        const whole = `{"whole":${json}}`
        if (isDouble) doubles++
        expect(namesMemberTwice(whole, JSON.parse(whole))).toBe(isDouble)
      }),
      { numRuns: 2_000 },
    )
    expect(doubles).toBeGreaterThan(100)
  })

  test('is never found in what JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify({ value })
        expect(namesMemberTwice(text, JSON.parse(text))).toBe(false)
      }),
    )
  })
})

describe('parsing', () => {
  const object = encodePart({})

  test('gives header and payload as they are', () => {
    const text = `${encodePart({ alg: 'ES256' })}.${encodePart({ sub: 'é😀' })}.AAAA`
    expect(parseJwtText(text)).toEqual({
      header: { alg: 'ES256' },
      payload: { sub: 'é😀' },
      hasDuplicateMembers: false,
    })
  })

  test('says of header and payload alike whether they name a member twice', () => {
    for (const twice of ['{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '{"b":[{"a":1,"a":1}]}']) {
      expect(parseJwtText(`${encodePart(twice)}.${object}.AAAA`)?.hasDuplicateMembers).toBe(true)
      expect(parseJwtText(`${object}.${encodePart(twice)}.AAAA`)?.hasDuplicateMembers).toBe(true)
    }
    const once = encodePart('{ "a":1, "b":{"a":1} }')
    expect(parseJwtText(`${once}.${once}.AAAA`)?.hasDuplicateMembers).toBe(false)
  })

  test('reads a header again as the first time, beside any payload', () => {
    for (const header of ['{"alg":"ES256"}', '{"alg":"RS256","alg":"none"}', `{"x5c":"${'A'.repeat(600)}"}`]) {
      const [first, second] = ['{"sub":"a"}', '{"sub":"b","sub":"b"}'].map((payload) =>
        parseJwtText(`${encodePart(header)}.${encodePart(payload)}.AAAA`),
      )
      const isTwice = header.includes('none')
      expect(first).toEqual({ header: JSON.parse(header), payload: { sub: 'a' }, hasDuplicateMembers: isTwice })
      expect(second).toEqual({ header: JSON.parse(header), payload: { sub: 'b' }, hasDuplicateMembers: true })
    }
    expect(parseJwtText(`${encodePart('{"alg":"ES256"}')}.${encodePart('[]')}.AAAA`)).toBeUndefined()
  })

  const none: [name: string, text: string][] = [
    ['nothing', ''],
    ['two dots', '..'],
    ['one part', object],
    ['two parts', `${object}.${object}`],
    ['four parts', `${object}.${object}.AAAA.`],
    ['a padded part', `${object}.${object}.AA==`],
    ['a header that is a list', `${encodePart('[]')}.${object}.AAAA`],
    ['a payload that is null', `${object}.${encodePart('null')}.AAAA`],
    ['a payload that is a string', `${object}.${encodePart('"x"')}.AAAA`],
    ['a payload after a byte order mark', `${object}.${encodePart('\ufeff{}')}.AAAA`],
    ['a payload with a comment', `${object}.${encodePart('{/* */}')}.AAAA`],
    ['two payloads', `${object}.${encodePart('{}{}')}.AAAA`],
    ['a payload that is not UTF-8', `${object}.${encodePart(Uint8Array.of(0x7b, 0x22, 0xc3, 0x22, 0x7d))}.AAAA`],
  ]
  for (const [what, text] of none) {
    test(`${what} is no JWT`, () => expect(parseJwtText(text)).toBeUndefined())
  }

  test('white space around the JSON and an empty signature are allowed', () => {
    expect(parseJwtText(`${encodePart(' {} ')}.${encodePart('\n{}')}.`)).toBeDefined()
  })

  test('never throws, whatever the text', () => {
    const part = fc.oneof(
      fc.string(),
      fc.uint8Array().map(encodePart),
      fc.json().map(encodePart),
      tree.map(({ json }) => encodePart(json)),
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
        parseJwtText(parts.join('.'))
      }),
      { numRuns: 2_000 },
    )
  })

  test('survives JSON nested as deep as a token can hold', () => {
    const deep = encodePart(`{"a":${'['.repeat(6_000)}${']'.repeat(6_000)}}`)
    expect(() => parseJwtText(`${object}.${deep}.AAAA`)).not.toThrow()
  })
})
