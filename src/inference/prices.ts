// What a request costs where the upstream does not say: a price list by pattern of the model. Money is in nanodollars, billionths of a US dollar.
import type { Price } from '../../db/schema.ts'
import { answerDollarsMax, nanodollarsPerDollar } from '../limits.ts'
import { compilePatterns } from '../values/pattern.ts'
import type { TokenCounts } from './usage.ts'

type Counted = Pick<TokenCounts, 'promptTokens' | 'completionTokens' | 'totalTokens' | 'cachedTokens'>
export type PriceList = (model: string) => Readonly<Price> | undefined

const tokensPerPrice = 1_000_000

/** The price of a model: of its very name, or else of the longest pattern that it fits. */
export function compilePrices(rows: readonly Price[]): PriceList {
  const byName = new Map(rows.map((row) => [row.model, row]))
  const patterns = rows
    .filter(({ model }) => model.includes('*'))
    .toSorted((one, other) => other.model.length - one.model.length)
    .map((row) => ({ row, fits: compilePatterns([row.model]) }))
  return (model) => byName.get(model) ?? patterns.find(({ fits }) => fits(model))?.row
}

/**
 * What counted tokens cost at a price, rounded to whole nanodollars. Cached tokens are part of the prompt and have a price of their own where
 * one is set. Null where a count that matters is not known, and beyond what an answer may cost: either the price or the count is a mistake.
 * `generates`: whether there is a completion; without one all tokens are of the prompt.
 */
export function costOf(
  { promptNanodollars, completionNanodollars, cachedNanodollars }: Price,
  { promptTokens, completionTokens, totalTokens, cachedTokens }: Counted,
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
  return cost <= answerDollarsMax * nanodollarsPerDollar ? cost : null
}
