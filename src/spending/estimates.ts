// What a request will probably use, from the latest responses of its model.
import type { Amounts } from './budget.ts'

/** What is known of a request before it runs. `outputMax`: what it asks for at most. */
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

type ModelHistory = { completions: number[]; costs: number[]; tokensPerByte: number }

const [remembered, modelsMax] = [64, 1_000]
const [outputAtFirst, outputAtWorst, tokensPerByteAtFirst] = [1_024, 4_096, 1 / 3]

export function createEstimates(): Estimates {
  const models = new Map<string, ModelHistory>()
  return {
    note: (model, bytes, { prompt, completion, nanodollars }) => {
      if (models.size >= modelsMax && !models.has(model)) models.clear()
      const seen = models.get(model) ?? { completions: [], costs: [], tokensPerByte: tokensPerByteAtFirst }
      models.set(model, seen)
      if (prompt !== null && bytes > 0) seen.tokensPerByte += (prompt / bytes - seen.tokensPerByte) / 8
      if (completion !== null) keepLatest(seen.completions, completion)
      keepLatest(seen.costs, nanodollars)
    },
    of: (rule, { model = '', bytes, outputMax }, priceOf) => {
      const seen = models.get(model)
      const prompt = Math.ceil(bytes * (seen?.tokensPerByte ?? tokensPerByteAtFirst))
      const usual = high(seen?.completions ?? []) ?? outputAtFirst
      const output =
        rule === 'worst' ? (outputMax ?? Math.max(usual, outputAtWorst)) : Math.min(usual, outputMax ?? usual)
      const nanodollars = priceOf(prompt, output) ?? high(seen?.costs ?? []) ?? 0
      return { requests: 1, tokens: prompt + output, nanodollars }
    },
  }
}

function keepLatest(values: number[], value: number): void {
  values.push(value)
  if (values.length > remembered) values.shift()
}

/** The 95th percentile. */
function high(values: readonly number[]): number | undefined {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * 0.95)] ?? values.at(-1)
}
