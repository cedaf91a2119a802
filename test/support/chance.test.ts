// What tests leave to chance can be repeated.
import { expect, test } from 'bun:test'
import { chanceEnvironment, createChance, drawFrom, readSeed } from './chance.ts'

const drawn = (chance: () => number) => Array.from({ length: 1_000 }, chance)

test('the same seed gives the same numbers, and another seed or name others', () => {
  expect(drawn(drawFrom(7))).toEqual(drawn(drawFrom(7)))
  expect(drawn(drawFrom(7))).not.toEqual(drawn(drawFrom(8)))
  expect(drawn(createChance('one'))).toEqual(drawn(createChance('one')))
  expect(drawn(createChance('one'))).not.toEqual(drawn(createChance('other')))
})

test('numbers lie from 0 up to 1, and everywhere between', () => {
  const tenths = Map.groupBy(drawn(drawFrom(readSeed(chanceEnvironment.LATCHKEY_TEST_SEED))), (number) =>
    Math.floor(number * 10),
  )
  expect([...tenths.keys()].toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

test.each(['', '-1', '1.5', 'x', '4294967296'])('%j is refused as a seed', (text) => {
  expect(() => readSeed(text)).toThrow('is not a seed')
})
