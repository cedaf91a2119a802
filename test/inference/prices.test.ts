// What a request costs by the price list: the nearest price, cached tokens at their own, in whole nanodollars.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Price } from '../../db/schema.ts'
import { compilePrices, costOf } from '../../src/inference/prices.ts'

const price = (model: string, prompt = 0, completion = 0, cached: number | null = null): Price => ({
  model,
  promptNanodollars: prompt,
  completionNanodollars: completion,
  cachedNanodollars: cached,
  updatedAt: 0,
  deletedAt: null,
})
const counts = (prompt: number | null, completion: number | null, cached: number | null = null) => ({
  promptTokens: prompt,
  completionTokens: completion,
  cachedTokens: cached,
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
  const rows: [name: string, price: Price, counts: ReturnType<typeof counts>, cost: number][] = [
    ['of prompt and completion', price('m', 0.15 * dollar, 0.6 * dollar), counts(1_000, 500), 450_000],
    ['with cached tokens at their price', price('m', dollar, 0, dollar / 10), counts(100, 0, 40), 64_000],
    ['with cached tokens at the price of the others', price('m', dollar, 0), counts(100, 0, 40), 100_000],
    ['with more cached tokens than there are', price('m', dollar, 0, 0), counts(100, 0, 400), 0],
    ['of embeddings', price('m', dollar, dollar), counts(100, null), 100_000],
    ['of nothing', price('m', dollar, dollar), counts(null, null), 0],
    ['below a nanodollar', price('m', 400_000, 0), counts(1, 0), 0],
  ]
  for (const [name, given, tokens, cost] of rows) test(name, () => expect(costOf(given, tokens)).toBe(cost))

  test('is a whole number that grows with the tokens', () => {
    const amount = fc.integer({ min: 0, max: 1_000_000 * dollar })
    const tokens = fc.integer({ min: 0, max: 1_000_000 })
    fc.assert(
      fc.property(amount, amount, tokens, tokens, (prompt, completion, one, other) => {
        const cost = costOf(price('m', prompt, completion), counts(one, other))
        expect(Number.isSafeInteger(cost)).toBe(true)
        expect(costOf(price('m', prompt, completion), counts(one + 1, other))).toBeGreaterThanOrEqual(cost)
      }),
    )
  })
})
