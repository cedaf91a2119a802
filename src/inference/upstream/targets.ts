// Which inference servers can serve a request, and in which order they are tried. Without network.
import type { Upstream as UpstreamRow } from '../../../db/schema/upstream-schema.ts'
import { Fault } from '../../fault.ts'
import { upstreamFirstByteSecondsDefault, upstreamIdleSecondsDefault } from '../../limits.ts'
import { compilePatterns, type Patterns } from '../../values/pattern.ts'
import { probeSecondsDefault } from '../../values/queue-bounds.ts'
import { compileForwardedHeaders, compileReturnedHeaders, type HeaderFilter } from './headers.ts'

/** An upstream as the registry holds it. */
export type Upstream = Readonly<UpstreamRow> & {
  readonly serves: Patterns
  /** Names of the headers to forward to it, in lower case. */
  readonly forwardedHeaders: readonly string[]
  /** Which of its headers are returned to callers. */
  readonly isReturned: HeaderFilter
}

/** What routing reads from the registry: the upstreams in use, in the order in which they are tried. */
export type UpstreamRegistry = { readonly upstreamsInOrder: readonly Upstream[] }

/** The name of the upstream from the settings; reserved for it. */
export const configuredUpstreamName = 'configured'

export type Attempt = { upstream: Upstream; model: string | undefined }

export function compileUpstream(row: UpstreamRow): Upstream {
  return Object.freeze({
    ...row,
    serves: compilePatterns(row.models),
    forwardedHeaders: compileForwardedHeaders(row.forwardHeaders),
    isReturned: compileReturnedHeaders(row.returnHeaders),
  })
}

/** The upstreams in use, the lowest priority number first. */
export function upstreamsInOrder(upstreams: Iterable<Upstream>): Upstream[] {
  return [...upstreams]
    .filter(({ deletedAt }) => deletedAt === null)
    .toSorted((one, other) => one.priority - other.priority || one.createdAt - other.createdAt)
}

/** The upstream that `LATCHKEY_UPSTREAM_URL` sets: it serves every model and is tried first. */
export function configuredUpstream(baseUrl: string): Upstream {
  return compileUpstream({
    id: configuredUpstreamName,
    name: configuredUpstreamName,
    baseUrl,
    credentialEncrypted: null,
    models: ['*'],
    priority: 0,
    caPem: null,
    forwardHeaders: [],
    returnHeaders: [],
    firstByteSeconds: upstreamFirstByteSecondsDefault,
    idleSeconds: upstreamIdleSecondsDefault,
    createdAt: 0,
    updatedAt: 0,
    deletedAt: null,
    managedBy: null,
    credentialExchange: null,
    maxRunning: null,
    weight: 1,
    affinity: 'none',
    probePath: null,
    probeSeconds: probeSecondsDefault,
    sendPriority: false,
    sendFairnessId: false,
  })
}

/** Equal upstreams, any of which may serve the model; the next group is tried when none of this one can. */
export type AttemptGroup = { model: string | undefined; upstreams: readonly Upstream[] }

/**
 * Where a request can go, in order: each model at the upstreams that serve it, those of the lowest priority number first. A request without a
 * model can go to every upstream, which decides whether it needs one. `keyId` is for the log.
 * @throws Fault `unavailable` when no upstream is configured, `not_found` when none serves any of the models
 */
export function route(
  { upstreamsInOrder: upstreams }: UpstreamRegistry,
  models: readonly string[],
  keyId: string,
): AttemptGroup[] {
  if (upstreams.length === 0) throw noUpstream(keyId)
  const groups: PriorityGroup[] = []
  if (models.length === 0) addByPriority(groups, upstreams, undefined)
  for (const model of models) addByPriority(groups, upstreams, model)
  if (groups.length > 0) return groups
  throw unserved(models, keyId)
}

export function unserved(models: readonly string[], keyId: string): Fault {
  const named = models.map((model) => JSON.stringify(model)).join(', ')
  return new Fault('not_found', `No inference server serves the model ${named}: use one of GET /models`, {
    reason: 'model_unserved',
    // Not its subject: the key may use the model, which nobody serves.
    detail: `key ${keyId}`,
  })
}

export function noUpstream(keyId: string): Fault {
  return new Fault('unavailable', 'No inference server is configured: ask the administrator to add one', {
    reason: 'no_upstream',
    detail: `key ${keyId}; set LATCHKEY_UPSTREAM_URL, or run: latchkey upstreams add`,
  })
}

type PriorityGroup = { model: string | undefined; upstreams: Upstream[]; priority: number }

/** Adds those that serve the model, in groups of one priority. `upstreams` are in order. */
function addByPriority(groups: PriorityGroup[], upstreams: readonly Upstream[], model: string | undefined): void {
  let last: PriorityGroup | undefined
  for (const upstream of upstreams) {
    if (model !== undefined && !upstream.serves(model)) continue
    if (last?.priority === upstream.priority) last.upstreams.push(upstream)
    else {
      last = { model, upstreams: [upstream], priority: upstream.priority }
      groups.push(last)
    }
  }
}
