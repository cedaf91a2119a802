// What a request costs when the upstream does not report it: a price list by model pattern. Money is in nanodollars,
// billionths of a US dollar.
import type { Price } from '../../db/schema/upstream-schema.ts'
import { nanodollarsPerDollar, responseDollarsMax } from '../limits.ts'
import type { InferencePath, Unit } from '../values/inference-paths.ts'
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

/** A price as it is at a time. `name`: the price list's own, with the time since when it is so if it was set to change. */
export type PriceInForce = { name: string } & Pick<
  Price,
  | 'promptNanodollars'
  | 'completionNanodollars'
  | 'cachedNanodollars'
  | 'characterNanodollars'
  | 'imageNanodollars'
  | 'audioSecondNanodollars'
>

type LaterPrice = { from: string; prompt: number; completion: number } & {
  cached?: number
  character?: number
  image?: number
  audio_second?: number
}
const versions = new WeakMap<Readonly<Price>, (PriceInForce & { from: number })[]>()

/** The price of a model at a time (milliseconds): prices can be set to change. */
export function priceInForce(row: Readonly<Price>, time: number): PriceInForce {
  let found = versions.get(row)
  if (found === undefined) {
    found = [{ ...row, name: row.model, from: Number.NEGATIVE_INFINITY }, ...laterVersions(row)]
    versions.set(row, found)
  }
  return found.findLast(({ from }) => from <= time) ?? { ...row, name: row.model }
}

function laterVersions({ model, later }: Readonly<Price>): (PriceInForce & { from: number })[] {
  if (later === null) return []
  const nanodollars = (dollars: number | undefined) =>
    dollars === undefined ? null : Math.round(dollars * nanodollarsPerDollar)
  return (JSON.parse(later) as LaterPrice[]).map(({ from, prompt, completion, ...more }) => ({
    name: `${model} from ${from}`,
    from: Date.parse(from),
    promptNanodollars: Math.round(prompt * nanodollarsPerDollar),
    completionNanodollars: Math.round(completion * nanodollarsPerDollar),
    cachedNanodollars: nanodollars(more.cached),
    characterNanodollars: nanodollars(more.character),
    imageNanodollars: nanodollars(more.image),
    audioSecondNanodollars: nanodollars(more.audio_second),
  }))
}

type Path = Pick<InferencePath, 'generates' | 'unit'>

/**
 * The cost of what was counted, rounded to whole nanodollars: tokens, and units if the model has a price for them. Null
 * when nothing that has a price is known, and beyond the maximum cost of a response, which only a mistake in price or
 * count can reach.
 */
export function costOf(
  price: Omit<PriceInForce, 'name'>,
  { counts, units }: { counts: PricedCounts | undefined; units: number | undefined },
  path: Path,
): number | null {
  const ofTokens = counts === undefined ? null : costOfTokens(price, counts, path)
  const ofUnits = path.unit === undefined || units === undefined ? null : costOfUnits(price, units, path.unit)
  if (ofTokens === null && ofUnits === null) return null
  const cost = Math.round((ofTokens ?? 0) + (ofUnits ?? 0))
  return cost <= responseDollarsMax * nanodollarsPerDollar ? cost : null
}

function costOfUnits(price: Omit<PriceInForce, 'name'>, units: number, unit: Unit): number | null {
  const { characterNanodollars, imageNanodollars, audioSecondNanodollars } = price
  const ofOne = {
    character: characterNanodollars === null ? null : characterNanodollars / tokensPerPrice,
    image: imageNanodollars,
    audio_second: audioSecondNanodollars,
  }[unit]
  return ofOne === null ? null : units * ofOne
}

/**
 * Cached tokens are part of the prompt and can have a separate price. Null when a count that matters is unknown.
 * `generates`: whether the endpoint returns a completion; otherwise all tokens belong to the prompt.
 */
function costOfTokens(
  { promptNanodollars, completionNanodollars, cachedNanodollars }: Omit<PriceInForce, 'name'>,
  { promptTokens, completionTokens, totalTokens, cachedTokens }: PricedCounts,
  { generates }: Path,
): number | null {
  const prompt = generates ? promptTokens : (promptTokens ?? totalTokens)
  const completion = generates ? completionTokens : (completionTokens ?? 0)
  if (prompt === null || completion === null) return null
  const cached = Math.min(cachedTokens ?? 0, prompt)
  const total =
    (prompt - cached) * promptNanodollars +
    cached * (cachedNanodollars ?? promptNanodollars) +
    completion * completionNanodollars
  return total / tokensPerPrice
}
