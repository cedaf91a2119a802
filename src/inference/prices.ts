// What a request costs when the upstream does not report it: a price list by model pattern. Money is in nanodollars,
// billionths of a US dollar.
import type { Price } from '../../db/schema/schema.ts'
import { nanodollarsPerDollar, responseDollarsMax } from '../limits.ts'
import { compilePatterns } from '../values/pattern.ts'
import type { TokenCounts } from './usage.ts'

type PricedCounts = Pick<TokenCounts, 'promptTokens' | 'completionTokens' | 'totalTokens' | 'cachedTokens'>
export type PriceList = (model: string) => Readonly<Price> | undefined

const tokensPerPrice = 1_000_000

/**
 * The price for a model: the one for its exact name, or else for the longest pattern that matches it. Patterns are
 * compiled here.
 */
export function compilePrices(rows: readonly Price[]): PriceList {
  const byName = new Map(rows.map((row) => [row.model, row]))
  const patterns = rows
    .filter(({ model }) => model.includes('*'))
    .toSorted((one, other) => other.model.length - one.model.length)
    .map((row) => ({ row, fits: compilePatterns([row.model]) }))
  return (model) => byName.get(model) ?? patterns.find(({ fits }) => fits(model))?.row
}

/**
 * The cost of the counted tokens, rounded to whole nanodollars. Cached tokens are part of the prompt and can have a
 * separate price. Null when a count that matters is unknown, and beyond the maximum cost of a response, which only a
 * mistake in price or count can reach. `generates`: whether the endpoint returns a completion; otherwise all tokens
 * belong to the prompt.
 */
export function costOf(
  { promptNanodollars, completionNanodollars, cachedNanodollars }: Price,
  { promptTokens, completionTokens, totalTokens, cachedTokens }: PricedCounts,
  { generates }: { generates: boolean },
): number | null {
  const prompt = generates ? promptTokens : (promptTokens ?? totalTokens)
  const completion = generates ? completionTokens : (completionTokens ?? 0)
  if (prompt === null || completion === null) return null
  const cached = Math.min(cachedTokens ?? 0, prompt)
  const total =
    (prompt - cached) * promptNanodollars +
    cached * (cachedNanodollars ?? promptNanodollars) +
    completion * completionNanodollars
  const cost = Math.round(total / tokensPerPrice)
  return cost <= responseDollarsMax * nanodollarsPerDollar ? cost : null
}
