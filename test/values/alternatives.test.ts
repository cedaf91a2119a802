// Alternatives read as a person would list them.
import { expect, test } from 'bun:test'
import { alternatives } from '../../src/values/alternatives.ts'

test('one stands alone, two have an "or", and more have commas before it', () => {
  expect([['a'], ['a', 'b'], ['a', 'b', 'c']].map(alternatives)).toEqual(['a', 'a or b', 'a, b or c'])
})
