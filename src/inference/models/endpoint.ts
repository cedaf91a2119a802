// `GET /models` and `GET /models/{model}`: the models of the upstreams that the key may use.
import { Fault } from '../../fault.ts'
import type { RequestInfo } from '../../http/endpoint.ts'
import { json } from '../../http/reply.ts'
import { checkModels, checkPreset, isAllowed, isLimited, takeRate } from '../../keys/admission.ts'
import { authenticateInference, type BearerContext, type Principal } from '../../keys/bearer.ts'
import type { KeyRates } from '../../keys/key-rates.ts'
import type { PresetRegistry } from '../../presets/versions.ts'
import { presetMarker } from '../../values/preset-text.ts'
import { rejectLoop } from '../upstream/forwarding-loop.ts'
import { noUpstream, type Upstream, type UpstreamRegistry, unserved } from '../upstream/targets.ts'
import { type ListContext, listOf, oneOf } from './list-request.ts'
import type { Model } from './model-list.ts'
import type { ListResponse } from './model-lists.ts'
import { findPresetModel, listPresetModels } from './preset-models.ts'

/** What the model endpoints need. */
export type ModelsContext = BearerContext &
  ListContext & { registry: PresetRegistry & UpstreamRegistry; keyRates: KeyRates }

/**
 * The lists of all upstreams as one: each model once, from the first upstream that serves it. A failing upstream is
 * left out, unless all fail. The list of a single upstream passes unchanged to a caller without limits.
 */
export async function listModels(request: Request, context: ModelsContext, info: RequestInfo): Promise<Response> {
  const principal = await admit(request, context)
  const presets = listPresetModels(principal, context)
  const upstreams = context.registry.upstreamsInOrder
  const [only] = upstreams
  if (only === undefined) throw noUpstream(principal.key.id)
  const isLimitedCaller = isLimited(principal, 'models') || isLimited(principal, 'presets')
  if (upstreams.length === 1 && !isLimitedCaller && only.models.includes('*') && presets.length === 0)
    return relay((await listOf(only, request, context, info)).response)
  const { models, failures } = await readLists(upstreams, request, context, info)
  if (failures.length === upstreams.length) throw failures[0]
  // A caller that is limited to presets can use models only through them.
  const isUsable = ({ id }: Model) => !isLimited(principal, 'presets') && isAllowed(principal, 'models', id)
  const usable = [...models.values()].filter(isUsable)
  return json(200, { object: 'list', data: [...usable, ...presets] })
}

/** One model as it is listed, or as an upstream describes it that does not list it. */
export async function showModel(request: Request, context: ModelsContext, info: RequestInfo): Promise<Response> {
  const principal = await admit(request, context)
  const model = info.params.model ?? ''
  const preset = findPresetModel(model, principal, context)
  if (preset !== undefined) return json(200, preset)
  if (model.includes(presetMarker)) throw new Fault('not_found', 'Resource not found')
  checkPreset(principal, undefined)
  checkModels(principal, [model])
  const upstreams = context.registry.upstreamsInOrder.filter(({ serves }) => serves(model))
  const { models, listed, failures } = await readLists(upstreams, request, context, info)
  const found = models.get(model)
  if (found !== undefined) return json(200, found)
  for (const upstream of listed) {
    const unlisted = await oneOf(model, upstream, request, context, info).catch((error) => void failures.push(error))
    if (unlisted !== undefined) return json(200, unlisted)
  }
  throw failures[0] ?? unserved([model], principal.key.id)
}

/** A list counts as a request. */
async function admit(request: Request, context: ModelsContext): Promise<Principal> {
  const principal = await authenticateInference(request, context)
  takeRate(principal.key, context)
  rejectLoop(request, context)
  return principal
}

/** The models in all these lists, by name, the upstreams that have a list, and the errors of the lists that failed. */
async function readLists(
  upstreams: readonly Upstream[],
  request: Request,
  context: ModelsContext,
  info: RequestInfo,
): Promise<{ models: Map<string, Model>; listed: Upstream[]; failures: unknown[] }> {
  const models = new Map<string, Model>()
  const listed: Upstream[] = []
  const failures: unknown[] = []
  const read = async (upstream: Upstream) => {
    const list = (await listOf(upstream, request, context, info)).models()
    return { upstream, list }
  }
  for (const outcome of await Promise.allSettled(upstreams.map(read))) {
    if (outcome.status === 'rejected') {
      failures.push(outcome.reason)
      continue
    }
    const { upstream, list } = outcome.value
    listed.push(upstream)
    for (const model of list) if (!models.has(model.id) && upstream.serves(model.id)) models.set(model.id, model)
  }
  return { models, listed, failures }
}

/** Copies the headers: those of a response are changed later. */
function relay({ status, headers, body }: ListResponse): Response {
  return new Response(body.byteLength === 0 ? null : body, { status, headers })
}
