// Drawing for people: whatever a claim, a name or a URL holds, the terminal gets visible characters.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { dollars, dollarsAlike, few, moment, printable, record, withAffected } from '../../../scripts/shared/render.ts'

const anyText = fc.string({ unit: 'binary', maxLength: 40 })
/** Everything that moves the cursor, hides, or turns the direction of text. */
const harmful = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

describe('printable', () => {
  test('leaves nothing harmful, for any text', () => {
    fc.assert(
      fc.property(anyText, (text) => expect(printable(text)).not.toMatch(harmful)),
      { numRuns: 2_000 },
    )
  })

  test('leaves visible text alone', () => {
    const visible = fc.string({ unit: 'grapheme' }).filter((text) => !harmful.test(text))
    fc.assert(fc.property(visible, (text) => expect(printable(text)).toBe(text)))
  })

  const rows: [value: unknown, expected: string][] = [
    ['\u001b[31m', String.raw`\u001b[31m`],
    ['a\nb', String.raw`a\u000ab`],
    ['\u202e', String.raw`\u202e`],
    ['\u200b', String.raw`\u200b`],
    ['\ud800', String.raw`\ud800`],
    [null, '-'],
    [undefined, '-'],
    [0, '0'],
    [false, 'false'],
  ]
  for (const [value, expected] of rows)
    test(`${JSON.stringify(value)} becomes ${expected}`, () => expect(printable(value)).toBe(expected))

  test('distinguishes different characters, those beyond the basic plane included', () => {
    expect(printable('\u{e0041}')).not.toBe(printable('\u{e0042}'))
  })
})

test('a record has one line a field, whatever the values hold', () => {
  fc.assert(
    fc.property(anyText, anyText, (one, two) => {
      expect(record({ a: one, longer: two }).split('\n')).toEqual([
        `a       ${printable(one)}`,
        `longer  ${printable(two)}`,
      ])
    }),
  )
})

describe('amounts below each other have the same digits:', () => {
  const rows: [amounts: number[], exact: number[], expected: string[]][] = [
    [[20, 0.1234, 0], [], ['20.00', '0.12', '0.00']],
    [[20, 0.0012], [], ['20.0000', '0.0012']],
    [[20, 0.000_01], [], ['20.000000', '0.000010']],
    [[20, 1e-9], [], ['20.000000', '<0.000001']],
    [[20, 0.5], [0.125], ['20.000', '0.500']],
    [[1, 1e-7], [1e-7], ['1.0000000', '0.0000001']],
  ]
  for (const [amounts, exact, expected] of rows)
    test(expected.join(', '), () => expect(amounts.map(dollarsAlike(amounts, exact))).toEqual(expected))
})

test('a moment is the time in UTC to the second', () => {
  expect(moment('2026-11-21T09:30:01.999Z')).toBe('2026-11-21 09:30:01')
  expect(moment(null)).toBe('-')
})

test('of many a few are named, and how many more', () => {
  expect(few(['a', 'b'], 2)).toBe('a, b')
  expect(few(['a', 'b', 'c', 'd'], 2)).toBe('a, b and 2 more')
})

test('policies that no longer exchange are listed below', () => {
  expect(withAffected('Done', {})).toBe('Done')
  expect(withAffected('Done', { policies_affected: ['a'] })).toBe('Done\n1 policy has become inactive: a')
  const policies_affected = [...'abcdefg']
  expect(withAffected('Done', { policies_affected })).toBe(
    'Done\n7 policies have become inactive: a, b, c, d, e and 2 more',
  )
})

test('a small amount is written in plain decimals', () => {
  expect([0.00000075, 0.0123456, 0, 12.345].map(dollars)).toEqual(['0.00000075', '0.0123', '0', '12.35'])
})
