// `GET /generation?id=`: what the ledger has of one of the caller's own requests, in the fields of OpenRouter's clients.
import type { Orm } from '../../db/file/open.ts'
import { findUsage, type ListedUsage } from '../../db/tables/usage.ts'
import { Fault } from '../fault.ts'
import type { Endpoint, Handle } from '../http/endpoint.ts'
import { readQuery } from '../http/input.ts'
import { errorResponses } from '../http/operation-doc.ts'
import { json } from '../http/reply.ts'
import { timeOfRequest } from '../http/request-id.ts'
import { takeRate } from '../keys/admission.ts'
import { authenticateInference, type BearerContext, showsUpstreams } from '../keys/bearer.ts'
import type { KeyRates } from '../keys/key-rates.ts'
import { nanodollarsPerDollar } from '../limits.ts'
import { uuidText } from '../values/id-text.ts'
import { type } from '../values/shape.ts'

export type GenerationContext = BearerContext & { reader: Orm; keyRates: KeyRates }

const idShape = type('string')
  .narrow((text, context) => uuidText.test(text) || context.mustBe('the x-request-id of the response'))
  .configure({ pattern: uuidText.source, says: 'The x-request-id of the response' })
const query = type({ '+': 'reject', id: idShape })

/** @throws Fault `not_found`, with one message for a request of another key and one that does not exist */
const showGeneration: Handle<GenerationContext> = async (request, context) => {
  const principal = await authenticateInference(request, context)
  const { key } = principal
  takeRate(key, context)
  const id = readQuery(request, query).id.toLowerCase()
  const row = await findUsage(context.reader, { requestId: id, at: timeOfRequest(id) })
  if (row === undefined || row.keyId !== key.id) {
    const rule = 'use the x-request-id of a response to the same key'
    throw new Fault('not_found', `No request of this key has this id: ${rule}`, { reason: 'generation_unknown' })
  }
  return json(
    200,
    { data: describeRequest(row, { showsUpstreams: showsUpstreams(principal, context) }) },
    { 'cache-control': 'no-store' },
  )
}

/** Null where Latchkey does not know: OpenRouter's clients require every field. */
function describeRequest(row: ListedUsage, shown: { showsUpstreams: boolean }): object {
  const { promptTokens, completionTokens, cachedTokens, reasoningTokens } = row
  const cost = (row.costNanodollars ?? 0) / nanodollarsPerDollar
  return {
    id: row.requestId,
    request_id: row.requestId,
    created_at: new Date(row.at).toISOString(),
    model: row.model ?? row.modelAsked ?? '',
    provider_name: shown.showsUpstreams ? row.upstream : null,
    workspace_id: row.workspaceId,
    session_id: row.sessionId,
    external_user: row.endUser,
    preset_id: null,
    streamed: row.streamed,
    cancelled: row.clientLeft,
    latency: row.firstByteMilliseconds,
    generation_time: row.durationMilliseconds,
    tokens_prompt: promptTokens,
    tokens_completion: completionTokens,
    native_tokens_prompt: promptTokens,
    native_tokens_completion: completionTokens,
    native_tokens_cached: cachedTokens,
    native_tokens_reasoning: reasoningTokens,
    native_tokens_completion_images: null,
    total_cost: cost,
    usage: cost,
    upstream_inference_cost: null,
    is_byok: false,
    data_region: 'global',
    origin: '',
    ...unknownFields,
  }
}

const unknownFields = Object.fromEntries(
  [
    ...['api_type', 'app_id', 'cache_discount', 'finish_reason', 'http_referer', 'moderation_latency'],
    ...['native_finish_reason', 'num_fetches', 'num_input_audio_prompt', 'num_media_completion', 'num_media_prompt'],
    ...['num_search_results', 'provider_responses', 'router', 'service_tier', 'upstream_id', 'user_agent'],
    'web_search_engine',
  ].map((name) => [name, null]),
)

export const generationEndpoint: Endpoint<GenerationContext> = {
  method: 'GET',
  path: '/generation',
  handle: showGeneration,
  openapi: {
    name: 'generationShow',
    summary: 'Show what the ledger has of one of the own requests',
    access: 'inference',
    query,
    responses: {
      200: {
        description: 'The request; null where something is unknown',
        shape: type({ data: { id: 'string', model: 'string', total_cost: 'number', usage: 'number' } }),
      },
      ...errorResponses(400, 401, 403, 404, 429),
    },
  },
}
