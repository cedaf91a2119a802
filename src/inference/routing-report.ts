// What a caller may learn of the way of its request, as `openrouter_metadata` (reference: Routing metadata), in the fields of OpenRouter's
// clients. The names of upstreams are for callers of organizations that allow it.
import type { AttemptGroup } from './upstream/targets.ts'

export type RoutingReport = {
  requested: string
  strategy: 'direct' | 'fallback'
  region: null
  summary: string
  attempt: number
  is_byok: false
  endpoints: { total: number; available: { model: string; provider: string; selected: boolean }[] }
  attempts?: { model: string; provider: string; status: number }[]
}

/** An attempt and the status of its outcome. */
export type MadeAttempt = { upstream: { name: string }; model: string | undefined; status: number }

/** A body can name hundreds of models. `total` counts all. */
const endpointsMax = 64
const headerNames = ['x-openrouter-metadata', 'x-openrouter-experimental-metadata']

/** As on OpenRouter, any other value means no. The second name is the older one. */
export function requestsRoutingReport(headers: Headers): boolean {
  for (const name of headerNames) {
    const value = headers.get(name)
    if (value !== null) return value.trim().toLowerCase() === 'enabled'
  }
  return false
}

/** `requested`: the model as the caller sent it. `made`: the attempts in order; the last one got the response. */
export function reportRouting(
  requested: unknown,
  groups: readonly AttemptGroup[],
  made: readonly MadeAttempt[],
  { showsUpstreams }: { showsUpstreams: boolean },
): RoutingReport {
  const last = made.at(-1)
  const models = new Set(groups.map(({ model }) => model))
  const selected = { model: last?.model ?? '', provider: showsUpstreams ? (last?.upstream.name ?? '') : 'latchkey' }
  const all = groups.flatMap(({ model, upstreams }) => upstreams.map((upstream) => ({ upstream, model })))
  const available = all.slice(0, endpointsMax).map(({ upstream, model }) => ({
    ...{ model: model ?? '', provider: upstream.name },
    selected: upstream.name === last?.upstream.name && model === last.model,
  }))
  const endpoints = showsUpstreams
    ? { total: all.length, available }
    : { total: 1, available: [{ ...selected, selected: true }] }
  return {
    requested: typeof requested === 'string' ? requested : '',
    strategy: models.size > 1 ? 'fallback' : 'direct',
    region: null,
    summary: `available=${endpoints.total}, selected=${selected.provider}`,
    attempt: made.length,
    is_byok: false,
    endpoints,
    ...(showsUpstreams
      ? {
          attempts: made.map(({ upstream, model, status }) => ({
            model: model ?? '',
            provider: upstream.name,
            status,
          })),
        }
      : {}),
  }
}
