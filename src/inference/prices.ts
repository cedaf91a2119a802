// What a request costs where the upstream does not say: a price list by pattern of the model. Money is in nanodollars, billionths of a US dollar.
import type { Price } from '../../db/schema.ts'
import { compilePatterns } from './pattern.ts'
import type { TokenCounts } from './usage.ts'

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

/** What counted tokens cost at a price, rounded to whole nanodollars. Cached tokens are part of the prompt and have a price of their own where one is set. */
export function costOf(
  { promptNanodollars, completionNanodollars, cachedNanodollars }: Price,
  {
    promptTokens,
    completionTokens,
    cachedTokens,
  }: Pick<TokenCounts, 'promptTokens' | 'completionTokens' | 'cachedTokens'>,
): number {
  const prompt = promptTokens ?? 0
  const cached = Math.min(cachedTokens ?? 0, prompt)
  const total =
    (prompt - cached) * promptNanodollars +
    cached * (cachedNanodollars ?? promptNanodollars) +
    (completionTokens ?? 0) * completionNanodollars
  return Math.round(total / tokensPerPrice)
}
