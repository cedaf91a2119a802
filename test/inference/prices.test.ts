// What a request costs by the price list: the nearest price, cached tokens at their own, in whole nanodollars.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Price } from '../../db/schema/upstream-schema.ts'
import { compilePrices, costOf, priceInForce } from '../../src/inference/prices.ts'
import type { Unit } from '../../src/values/inference-paths.ts'

const price = (model: string, prompt = 0, completion = 0, cached: number | null = null): Price => ({
  model,
  promptNanodollars: prompt,
  completionNanodollars: completion,
  cachedNanodollars: cached,
  characterNanodollars: null,
  imageNanodollars: null,
  audioSecondNanodollars: null,
  updatedAt: 0,
  deletedAt: null,
  managedBy: null,
  maxOutputTokens: null,
  later: null,
})
const counts = (
  prompt: number | null,
  completion: number | null,
  cached: number | null = null,
  total: number | null = null,
) => ({ promptTokens: prompt, completionTokens: completion, totalTokens: total, cachedTokens: cached })
const text = { generates: true }
const vectors = { generates: false }

describe('a price that is set to change', () => {
  const later = JSON.stringify([
    { from: '2027-01-01T00:00:00.000Z', prompt: 2, completion: 3 },
    { from: '2028-01-01T00:00:00.000Z', prompt: 4, completion: 5, cached: 1, character: 6, image: 7, audio_second: 8 },
  ])
  const row: Price = { ...price('m', 10, 20, 30), imageNanodollars: 40, later }
  const at = (time: string) => priceInForce(row, Date.parse(time))

  test('is what it was up to the last millisecond, and has the name of the price list', () => {
    expect(at('2026-12-31T23:59:59.999Z')).toMatchObject({ name: 'm', promptNanodollars: 10, cachedNanodollars: 30 })
  })

  test('is the later one from its time on, with nothing of the one before', () => {
    expect(at('2027-01-01T00:00:00.000Z')).toEqual(at('2027-12-31T23:59:59.999Z'))
    expect(at('2027-01-01T00:00:00.000Z')).toMatchObject({
      ...{ name: 'm from 2027-01-01T00:00:00.000Z', promptNanodollars: 2e9, completionNanodollars: 3e9 },
      ...{ cachedNanodollars: null, imageNanodollars: null, characterNanodollars: null, audioSecondNanodollars: null },
    })
    expect(at('2028-06-01T00:00:00.000Z')).toMatchObject({
      ...{ name: 'm from 2028-01-01T00:00:00.000Z', promptNanodollars: 4e9, completionNanodollars: 5e9 },
      ...{ cachedNanodollars: 1e9, characterNanodollars: 6e9, imageNanodollars: 7e9, audioSecondNanodollars: 8e9 },
    })
  })
})

describe('the price of a model', () => {
  const priceOf = compilePrices([price('*'), price('meta/*'), price('meta/llama*'), price('meta/llama-3')])
  const rows: [model: string, price: string][] = [
    ['meta/llama-3', 'meta/llama-3'],
    ['meta/llama-4', 'meta/llama*'],
    ['meta/other', 'meta/*'],
    ['x', '*'],
  ]
  for (const [model, expected] of rows)
    test(`${model} is the one of ${expected}`, () => expect(priceOf(model)?.model).toBe(expected))

  test('is unknown where no pattern fits', () => expect(compilePrices([price('a')])('b')).toBeUndefined())
})

describe('a cost', () => {
  const dollar = 1_000_000_000
  const most = 1_000_000 * dollar
  const rows: [
    name: string,
    price: Price,
    counts: ReturnType<typeof counts>,
    kind: typeof text,
    cost: number | null,
  ][] = [
    ['of prompt and completion', price('m', 0.15 * dollar, 0.6 * dollar), counts(1_000, 500), text, 450_000],
    ['with cached tokens at their price', price('m', dollar, 0, dollar / 10), counts(100, 0, 40), text, 64_000],
    ['with cached tokens at the price of the others', price('m', dollar, 0), counts(100, 0, 40), text, 100_000],
    ['with more cached tokens than there are', price('m', dollar, 0, 0), counts(100, 0, 400), text, 0],
    ['below a nanodollar', price('m', 400_000, 0), counts(1, 0), text, 0],
    ['of embeddings', price('m', dollar, dollar), counts(100, null), vectors, 100_000],
    ['of what counts the total alone', price('m', dollar, dollar), counts(null, null, null, 100), vectors, 100_000],
    ['of nothing', price('m', dollar, dollar), counts(null, null), text, null],
    ['of nothing but a sum', price('m', dollar, dollar), counts(null, null, null, 100), text, null],
    ['of a prompt alone', price('m', dollar, dollar), counts(100, null), text, null],
    ['of a completion alone', price('m', dollar, dollar), counts(null, 100), text, null],
    ['of as much as an answer may cost', price('m', most, 0), counts(1_000, 0), text, 1_000 * dollar],
    ['beyond that', price('m', most, 0), counts(1_001, 0), text, null],
    ['beyond the whole numbers', price('m', most, most), counts(1e9, 1e9), text, null],
  ]
  for (const [name, given, tokens, kind, cost] of rows)
    test(`${name} is ${cost ?? 'unknown'}`, () =>
      expect(costOf(given, { counts: tokens, units: undefined }, { ...kind, unit: undefined })).toBe(cost))

  test('is a whole number that grows with the tokens, up to what an answer may cost', () => {
    const amount = fc.integer({ min: 0, max: most })
    const tokens = fc.integer({ min: 0, max: 1_000_000_000 })
    const tokensOf = (one: number, other: number) => ({ counts: counts(one, other), units: undefined })
    const path = { ...text, unit: undefined }
    fc.assert(
      fc.property(amount, amount, tokens, tokens, (prompt, completion, one, other) => {
        const cost = costOf(price('m', prompt, completion), tokensOf(one, other), path)
        const more = costOf(price('m', prompt, completion), tokensOf(one + 1, other), path)
        expect(Number.isSafeInteger(cost ?? 0)).toBe(true)
        expect(cost ?? 0).toBeLessThanOrEqual(1_000 * dollar)
        // Where fewer tokens have no cost, more have none either.
        expect(more ?? Number.POSITIVE_INFINITY).toBeGreaterThanOrEqual(cost ?? Number.POSITIVE_INFINITY)
      }),
    )
  })
})

describe('a cost in units', () => {
  const dollar = 1_000_000_000
  const priced = {
    ...price('m', dollar, dollar),
    characterNanodollars: 15 * dollar,
    imageNanodollars: dollar / 25,
    audioSecondNanodollars: dollar / 10_000,
  }
  const rows: [name: string, unit: Unit, units: number | undefined, tokens: number | undefined, cost: number | null][] =
    [
      ['of characters, per million', 'character', 1_000, undefined, 15_000_000],
      ['of images', 'image', 3, undefined, 120_000_000],
      ['of a part of a second', 'audio_second', 2.5, undefined, 250_000],
      ['of images and tokens', 'image', 1, 1_000_000, 1_040_000_000],
      ['of no known amount', 'audio_second', undefined, undefined, null],
    ]
  for (const [name, unit, units, tokens, cost] of rows)
    test(`${name} is ${cost ?? 'unknown'}`, () => {
      const counted = tokens === undefined ? undefined : counts(tokens, 0)
      expect(costOf(priced, { counts: counted, units }, { ...text, unit })).toBe(cost)
    })

  test('is unknown without a price for the unit', () => {
    const path = { ...text, unit: 'image' as const }
    expect(costOf(price('m', dollar, dollar), { counts: undefined, units: 1 }, path)).toBeNull()
  })
})
