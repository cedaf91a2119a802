// Parameters that chat, messages and responses bodies share; names and values as in the types of the official client.
import {
  fallbackModelsMax,
  metadataKeyCharactersMax,
  metadataPairsMax,
  metadataValueCharactersMax,
  modelCharactersMax,
} from '../../limits.ts'
import { presetMarker } from '../../values/preset-text.ts'
import {
  anything,
  flag,
  integer,
  list,
  named,
  number,
  object,
  oneOf,
  record,
  refine,
  type Shape,
  sequence,
  shortOr,
  text,
  variants,
} from './check.ts'

/** The marker never reaches an upstream, and a preset that names a preset would be ambiguous. */
export const modelName = sequence(
  text({ min: 1, max: modelCharactersMax }),
  refine((value) => !(value as string).includes(presetMarker), 'must name a model, not a preset', {
    not: { pattern: presetMarker },
  }),
)
/** Requests that use the preset would be refused with more fallbacks. */
export const models = list(modelName, { max: fallbackModelsMax })

export const texts = list(text())

export const efforts = ['max', 'xhigh', 'high', 'medium', 'low', 'minimal', 'none'] as const
export const effort = oneOf(...efforts)

/** `summary` and `effort` are in the interface; the others are in the type of the official client, and also stored (reference: Preset parameters). */
export const reasoningShape = {
  effort,
  summary: oneOf('auto', 'concise', 'detailed'),
  enabled: flag,
  max_tokens: integer(),
} satisfies Shape

export const serviceTiers = ['auto', 'default', 'fast', 'flex', 'priority', 'scale'] as const

export const cacheControl = object({ type: { required: oneOf('ephemeral') }, ttl: oneOf('5m', '1h') })

export const promptCacheOptions = object({ mode: { required: oneOf('explicit') }, ttl: text() })

export const jsonSchemaFormat = {
  name: { required: text({ min: 1 }) },
  description: text(),
  schema: record(anything),
  strict: flag,
} satisfies Shape

/** Any of these conditions ends the loop of server tools (reference: Preset parameters). */
export const stopServerToolsWhen = list(
  named(
    'StopCondition',
    variants('type', {
      finish_reason_is: { reason: { required: text() } },
      has_tool_call: { tool_name: { required: text() } },
      max_cost: { max_cost_in_dollars: { required: number() } },
      max_tokens_used: { max_tokens: { required: integer() } },
      step_count_is: { step_count: { required: integer() } },
    }),
  ),
  { min: 1 },
)

const percentiles = object({ p50: number(), p75: number(), p90: number(), p99: number() })
const percentilesOrNumber = shortOr(number(), percentiles)
const price = refine(
  (value) => typeof value === 'string' || Number.isFinite(value),
  'must be a price: text or a number',
  { type: ['string', 'number'] },
)
const sort = oneOf('price', 'throughput', 'latency', 'exacto')

/** Provider routing preferences (reference: Preset parameters). Any provider name is valid: self-hosted upstreams have their own. */
export const provider = named(
  'ProviderPreferences',
  object({
    allow_fallbacks: flag,
    require_parameters: flag,
    data_collection: oneOf('allow', 'deny'),
    zdr: flag,
    enforce_distillable_text: flag,
    order: texts,
    only: texts,
    ignore: texts,
    quantizations: list(
      oneOf('int4', 'int8', 'fp4', 'mxfp4', 'nvfp4', 'fp6', 'fp8', 'mxfp8', 'fp16', 'bf16', 'fp32', 'unknown'),
    ),
    sort: shortOr(sort, object({ by: sort, partition: oneOf('model', 'none') })),
    max_price: object({ prompt: price, completion: price, request: price, image: price, audio: price }),
    preferred_min_throughput: percentilesOrNumber,
    preferred_max_latency: percentilesOrNumber,
  }),
)

/** The listed keys are text; all other keys pass (reference: Preset parameters). */
export const trace = object({
  trace_id: text(),
  trace_name: text(),
  span_name: text(),
  generation_name: text(),
  parent_span_id: text(),
})

/** Key-value pairs of a single request (reference: Limits). */
export const metadata = record(text({ max: metadataValueCharactersMax }), {
  pairsMax: metadataPairsMax,
  keyMax: metadataKeyCharactersMax,
})

export const debug = object({ echo_upstream_body: flag })
