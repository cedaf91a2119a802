// The 11 plugins (reference: Preset parameters), distinguished by `id`, with their settings as in the types of the official client.
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
  type Shape,
  text,
  variants,
} from './check.ts'
import { texts } from './parameter-shapes.ts'

const enabled = flag

const autoRouter = {
  enabled,
  allowed_models: texts,
  excluded_models: texts,
  cost_quality_tradeoff: integer(),
  cost_tier: oneOf('low', 'medium', 'high', 'xhigh', 'max'),
} satisfies Shape

export const searchMode = oneOf(
  'instant',
  'fast',
  'auto',
  'deep-lite',
  'deep',
  'deep-reasoning',
  'turbo',
  'basic',
  'advanced',
)

export const xSearch = object({
  allowed_x_handles: texts,
  excluded_x_handles: texts,
  enable_image_understanding: flag,
  enable_video_understanding: flag,
  from_date: text(),
  to_date: text(),
})

export const userLocation = object({
  type: oneOf('approximate'),
  city: text(),
  country: text(),
  region: text(),
  timezone: text(),
})

const nestedTool = object({ type: { required: text() }, parameters: record(anything) })

export const pluginShapes = {
  'auto-beta-router': autoRouter,
  'auto-router': { ...autoRouter, pin_model: flag },
  'context-compression': { enabled, engine: oneOf('middle-out') },
  'file-parser': {
    enabled,
    pdf: object({ engine: oneOf('mistral-ocr', 'native', 'cloudflare-ai', 'pdf-text') }),
  },
  fusion: {
    enabled,
    model: text(),
    analysis_models: texts,
    max_tool_calls: integer(),
    preset: oneOf('general-high', 'general-budget', 'general-fast'),
    tools: list(nestedTool),
  },
  moderation: {},
  'pareto-router': {
    enabled,
    max_price: number(),
    min_coding_score: number(),
    price_source: oneOf('prompt', 'weighted_avg'),
  },
  'response-healing': { enabled },
  'switchyard-router': {
    algorithm: oneOf('capability', 'stage', 'auto', 'random', 'composite', 'passthrough'),
  },
  web: {
    enabled,
    engine: oneOf('native', 'exa', 'firecrawl', 'parallel', 'perplexity'),
    mode: searchMode,
    max_results: integer(),
    max_uses: integer(),
    search_prompt: text(),
    include_domains: texts,
    exclude_domains: texts,
    user_location: userLocation,
    x_search: xSearch,
  },
  'web-fetch': {
    allowed_domains: texts,
    blocked_domains: texts,
    max_content_tokens: integer(),
    max_uses: integer(),
  },
} satisfies Record<string, Shape>

export const plugins = list(named('Plugin', variants('id', pluginShapes)))
