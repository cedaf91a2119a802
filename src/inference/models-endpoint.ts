// `GET /models` and `GET /models/{model}`: what the upstreams list, as far as the key may use it.
import type { Context, RequestInfo } from '../context.ts'
import { describeError, Fault } from '../fault.ts'
import { json } from '../http/reply.ts'
import { checkModels, checkPreset, isAllowed, isLimited } from '../keys/admission.ts'
import { authenticateInference } from '../keys/bearer.ts'
import { upstreamListMillisecondsMax } from '../limits.ts'
import { presetMarker } from '../presets/reference.ts'
import { checkCircle } from './circle.ts'
import { type Model, modelsIn, readListBody } from './model-list.ts'
import { findPresetModel, listPresetModels } from './preset-models.ts'
import { attemptsFor, type Upstream } from './targets.ts'
import { forward } from './upstream.ts'

/**
 * The lists of all upstreams as one: each model once, at the first upstream that serves it. An upstream that cannot be asked is left out
 * unless there is no other. What goes through from a single upstream to a key without bounds is its own answer.
 */
export async function listModels(request: Request, context: Context, info: RequestInfo): Promise<Response> {
  const principal = await authenticateInference(request, context)
  const presets = listPresetModels(principal, context)
  const upstreams = context.registry.upstreamsInOrder
  const [only] = upstreams
  if (only === undefined) throw new Fault('unavailable', 'No inference server is configured')
  const restoreIdleLimit = info.peer.liftIdleLimit()
  try {
    const isBounded = isLimited(principal, 'allowedModels') || isLimited(principal, 'allowedPresets')
    if (upstreams.length === 1 && !isBounded && only.models.includes('*') && presets.length === 0)
      return await relay(request, '/models', only, context, info)
    // Who is limited to presets can ask for no model by itself.
    const isUsable = isLimited(principal, 'allowedPresets') ? () => false : isAllowed(principal, 'allowedModels')
    const lists = await Promise.allSettled(upstreams.map((upstream) => readModels(request, upstream, context, info)))
    const models = new Map<string, Model>()
    for (const [index, list] of lists.entries()) {
      if (list.status === 'rejected') {
        const reason = describeError(list.reason)
        context.log('warn', 'upstream_models_failed', {
          request_id: info.requestId,
          upstream: upstreams[index]?.name,
          reason,
        })
        continue
      }
      for (const model of list.value)
        if (!models.has(model.id) && upstreams[index]?.serves(model.id) === true && isUsable(model.id))
          models.set(model.id, model)
    }
    if (lists.every(({ status }) => status === 'rejected')) throw (lists[0] as PromiseRejectedResult).reason
    return json(200, { object: 'list', data: [...models.values(), ...presets] })
  } finally {
    restoreIdleLimit()
  }
}

/** The upstream's own answer about one model. */
export async function showModel(request: Request, context: Context, info: RequestInfo): Promise<Response> {
  const principal = await authenticateInference(request, context)
  const model = info.params.model ?? ''
  const preset = findPresetModel(model, principal, context)
  if (preset !== undefined) return json(200, preset)
  // A path that climbs would reach whatever else the inference server has, under its own credential.
  if (model.includes(presetMarker) || model.split('/').some((segment) => ['', '.', '..'].includes(segment)))
    throw new Fault('not_found', 'Resource not found')
  checkPreset(principal, undefined)
  checkModels(principal, [model])
  const [attempt] = attemptsFor(context.registry.upstreamsInOrder, [model])
  if (attempt === undefined)
    throw new Fault('not_found', `No inference server serves the model ${JSON.stringify(model)}`)
  const path = `/models/${model.split('/').map(encodeURIComponent).join('/')}`
  return relay(request, path, attempt.upstream, context, info)
}

type Answer = { status: number; headers: Headers; body: Uint8Array<ArrayBuffer> }

async function relay(...asked: Parameters<typeof ask>): Promise<Response> {
  const { body, ...head } = await ask(...asked)
  return new Response(body.byteLength === 0 ? null : body, head)
}

async function readModels(request: Request, upstream: Upstream, context: Context, info: RequestInfo): Promise<Model[]> {
  const { status, body } = await ask(request, '/models', upstream, context, info)
  const models = status === 200 ? modelsIn(body) : undefined
  if (models !== undefined) return models
  const reason = status === 200 ? 'not a list' : `status ${status}`
  throw new Fault('bad_gateway', 'The inference server gave no list of models', { reason })
}

/**
 * What an upstream answers under a path of models, whole.
 * @throws Fault `gateway_timeout` when it is not there in time, `bad_gateway` when it cannot be had or is too large
 */
async function ask(
  request: Request,
  path: string,
  upstream: Upstream,
  context: Context,
  { requestId }: RequestInfo,
): Promise<Answer> {
  checkCircle(request, context)
  const startedAt = performance.now()
  const outgoing = { path, body: undefined, requestId, firstByteMilliseconds: upstreamListMillisecondsMax }
  const { response, headers, abort } = await forward(request, outgoing, upstream, context)
  let isLate = false
  const timer = setTimeout(
    () => {
      isLate = true
      abort()
    },
    upstreamListMillisecondsMax - (performance.now() - startedAt),
  )
  try {
    return { status: response.status, headers, body: await readListBody(response) }
  } catch (cause) {
    abort()
    if (cause instanceof Fault) throw cause
    if (isLate) throw new Fault('gateway_timeout', 'The inference server did not answer in time', { cause })
    throw new Fault('bad_gateway', 'The inference server broke its answer off', { cause })
  } finally {
    clearTimeout(timer)
  }
}
