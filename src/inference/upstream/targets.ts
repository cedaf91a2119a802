// Which inference servers may answer a request, and in which order. It knows no network.
import type { Upstream as UpstreamRow } from '../../../db/schema.ts'
import { upstreamFirstByteSecondsDefault, upstreamIdleSecondsDefault } from '../../limits.ts'
import { compilePatterns, type Patterns } from '../../values/pattern.ts'
import { compileForwardedHeaders, compileReturnedHeaders, type IsReturned } from './headers.ts'

/** An upstream as the registry holds it. */
export type Upstream = Readonly<UpstreamRow> & {
  readonly serves: Patterns
  /** Names of the headers that it gets, in lower case. */
  readonly forwardedHeaders: readonly string[]
  /** Which of its headers go on to callers. */
  readonly isReturned: IsReturned
}

/** What of the registry tells whom to ask: the upstreams in use, in the order in which they are tried. */
export type UpstreamRegistry = { readonly upstreamsInOrder: readonly Upstream[] }

/** What the ledger calls the upstream of the settings; no other may be named so. */
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

/** Those in use, the lowest priority number first. */
export function upstreamsInOrder(upstreams: Iterable<Upstream>): Upstream[] {
  return [...upstreams]
    .filter(({ deletedAt }) => deletedAt === null)
    .toSorted((one, other) => one.priority - other.priority || one.createdAt - other.createdAt)
}

/** The one that `LATCHKEY_UPSTREAM_URL` sets: it serves every model and is tried before the others. */
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
  })
}

/**
 * What to try, one after the other: each model at every upstream that serves it. A request without a model goes to whoever is first;
 * whether it needs one, the upstream says.
 */
export function attemptsFor(upstreams: readonly Upstream[], models: readonly string[]): Attempt[] {
  if (models.length === 0) return upstreams.slice(0, 1).map((upstream) => ({ upstream, model: undefined }))
  return models.flatMap((model) =>
    upstreams.filter(({ serves }) => serves(model)).map((upstream) => ({ upstream, model })),
  )
}

/** Statuses that say only that this upstream cannot serve the request: its credential, its path, or the model is missing there. */
const unservedStatuses = [401, 402, 403, 404, 405]

/** Whether another attempt may do better: after too many requests or a failure of the server, and then also after an upstream that cannot serve. */
export function isWorthAnother(status: number, { hasFailedBefore }: { hasFailedBefore: boolean }): boolean {
  return status === 429 || status >= 500 || (hasFailedBefore && unservedStatuses.includes(status))
}

/** How much a failure helps the caller, who can try again later, best at a time that is named, and slows down after a 429. */
export function usefulnessOf(status: number, { saysWhen }: { saysWhen: boolean }): number {
  if (saysWhen && (status === 429 || status === 503)) return 3
  if (status === 429) return 2
  return status >= 500 ? 1 : 0
}
