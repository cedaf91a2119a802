// Patterns of models: `*` is any run of characters, the rest stands for itself.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { compilePatterns } from '../../src/values/pattern.ts'

describe('a pattern', () => {
  const rows: [pattern: string, model: string, fits: boolean][] = [
    ['meta/llama', 'meta/llama', true],
    ['meta/llama', 'meta/llama-2', false],
    ['meta/*', 'meta/llama', true],
    ['meta/*', 'meta/', true],
    ['meta/*', 'Meta/llama', false],
    ['*-instruct', 'llama-instruct', true],
    ['*-instruct', 'llama-instruct-2', false],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'acb', false],
    ['a*bc*c', 'abc', false],
    ['a*bc*c', 'abcc', true],
    ['a*ab*b', 'ab', false],
    ['ab*ba', 'aba', false],
    ['*', '', true],
    ['a.c', 'abc', false],
    ['', 'a', false],
  ]
  for (const [pattern, model, fits] of rows)
    test(`${JSON.stringify(pattern)} ${fits ? 'fits' : 'does not fit'} ${JSON.stringify(model)}`, () =>
      expect(compilePatterns([pattern])(model)).toBe(fits))

  test('means what the regular expression of it means', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 })
    const model = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 })
    fc.assert(
      fc.property(text, model, (pattern, name) => {
        const expression = new RegExp(`^${pattern.replaceAll('*', '.*')}$`)
        expect(compilePatterns([pattern])(name)).toBe(expression.test(name))
      }),
    )
  })

  test('is one of several', () => {
    const fits = compilePatterns(['a', 'b*'])
    expect(['a', 'bc', 'c'].map(fits)).toEqual([true, true, false])
    expect(compilePatterns([])('a')).toBe(false)
  })
})
