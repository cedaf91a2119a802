// What a request will probably use, from the latest responses of its model.
import type { Amounts } from './budget.ts'

/** What is known of a request before it runs. `outputMax`: what it asks for at most, or else what its model can make. */
export type PlannedRequest = { model: string | undefined; bytes: number; outputMax: number | undefined }

export type Estimates = {
  /** Takes in a response: tokens of its prompt and its completion, and what it cost. */
  note: (
    model: string,
    bytes: number,
    seen: { prompt: number | null; completion: number | null; nanodollars: number },
  ) => void
  /** `priceOf`: nanodollars of prompt and completion tokens; undefined without a price. */
  of: (
    rule: 'expected' | 'worst',
    request: PlannedRequest,
    priceOf: (prompt: number, completion: number) => number | undefined,
  ) => Amounts
}

/** The latest values of something, and how large nearly all of them are. */
type Recent = { values: Float64Array; count: number; sinceSorted: number; high: number; max: number }
type ModelHistory = { completions: Recent; costs: Recent; tokensPerByte: number }

const [remembered, modelsMax] = [64, 1_000]
/** Sorting takes longer than all else here, so it waits for a few more values. */
const sortedEvery = 8
const [outputAtFirst, outputAtWorst, tokensPerByteAtFirst] = [1_024, 4_096, 1 / 3]
/** For a model without a price, until its first response says what it costs: as a dear one, 10 dollars per million tokens. */
const nanodollarsPerTokenAtFirst = 10_000

export function createEstimates(): Estimates {
  const models = new Map<string, ModelHistory>()
  return {
    note: (model, bytes, { prompt, completion, nanodollars }) => {
      if (models.size >= modelsMax && !models.has(model)) models.clear()
      const seen = models.get(model) ?? newHistory()
      models.set(model, seen)
      if (prompt !== null && bytes > 0) seen.tokensPerByte += (prompt / bytes - seen.tokensPerByte) / 8
      if (completion !== null) keep(seen.completions, completion)
      keep(seen.costs, nanodollars)
    },
    of: (rule, { model = '', bytes, outputMax }, priceOf) => {
      const seen = models.get(model)
      const isWorst = rule === 'worst'
      const perByte = seen?.tokensPerByte ?? tokensPerByteAtFirst
      const prompt = Math.ceil(bytes * (isWorst ? Math.max(perByte, tokensPerByteAtFirst) : perByte))
      const usual = highOf(seen?.completions) ?? outputAtFirst
      const output = isWorst ? (outputMax ?? Math.max(usual, outputAtWorst)) : Math.min(usual, outputMax ?? usual)
      const known = isWorst ? maxOf(seen?.costs) : highOf(seen?.costs)
      const nanodollars = priceOf(prompt, output) ?? known ?? (prompt + output) * nanodollarsPerTokenAtFirst
      return { requests: 1, tokens: prompt + output, nanodollars }
    },
  }
}

function newHistory(): ModelHistory {
  return { completions: newRecent(), costs: newRecent(), tokensPerByte: tokensPerByteAtFirst }
}

function newRecent(): Recent {
  return { values: new Float64Array(remembered), count: 0, sinceSorted: 0, high: 0, max: 0 }
}

function keep(recent: Recent, value: number): void {
  recent.values[recent.count % remembered] = value
  recent.count += 1
  recent.sinceSorted += 1
}

/** The 95th percentile of the latest values. */
function highOf(recent: Recent | undefined): number | undefined {
  if (recent === undefined || recent.count === 0) return undefined
  if (recent.sinceSorted >= sortedEvery || recent.count <= remembered) sort(recent)
  return recent.high
}

function maxOf(recent: Recent | undefined): number | undefined {
  return highOf(recent) === undefined ? undefined : recent?.max
}

function sort(recent: Recent): void {
  if (recent.sinceSorted === 0) return
  const sorted = recent.values.slice(0, Math.min(recent.count, remembered)).sort()
  recent.sinceSorted = 0
  recent.high = sorted[Math.floor(sorted.length * 0.95)] ?? 0
  recent.max = sorted.at(-1) ?? 0
}
