// Tries one inference server after the other, each when it has a place. When all fail, the caller gets the failure that helps most.
import { Fault } from '../fault.ts'
import { giveWayAfter } from '../http/body.ts'
import { statusOf } from '../http/reply.ts'
import type { Principal } from '../keys/bearer.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Budgets } from '../spending/budgets.ts'
import { askedOf } from './budget-hold.ts'
import type { Call } from './call.ts'
import { affinityKeyFor, expectedTokens } from './expectation.ts'
import type { LedgerEntry } from './ledger.ts'
import { outgoingBody } from './outgoing-body.ts'
import type { Place } from './queue/dispatch.ts'
import { type PlaceContext, searchPlaces } from './queue/places.ts'
import { forward, type OutgoingBody, type UpstreamContext, type UpstreamResponse } from './upstream/forward.ts'
import { fairnessHeadersFor, priorityFor } from './upstream/order-hints.ts'
import type { Attempt, AttemptGroup, Upstream } from './upstream/targets.ts'

/** The response of an upstream, whose body is not read yet, or the fault of an attempt that got none. */
type Outcome = { attempt: Attempt; status: number } & ({ forwarded: UpstreamResponse } | { fault: Fault })
export type FallbackContext = UpstreamContext &
  PlaceContext & { log: Log; metrics: Pick<Metrics, 'countFailover'>; budgets: Pick<Budgets, 'running'> }

/**
 * Statuses by which an upstream says only that it cannot serve the request: its credential, its path, or the model is
 * missing there.
 */
const unservedStatuses = [401, 402, 403, 404, 405]

/**
 * The first usable response, or else the most useful failure, the last among equals. It decides on the status and
 * headers: a response that has begun is final. The calls of all other attempts are aborted. The entry has the place of a
 * response that is no failure. `recheck` is called after each wait and throws if the request may not go on.
 * @throws Fault when the most useful failure is an attempt without a response; `rate_limited` when all servers are busy
 */
export async function forwardToBest(
  request: Request,
  call: Call,
  groups: readonly AttemptGroup[],
  entry: LedgerEntry,
  context: FallbackContext,
  recheck: () => void,
): Promise<UpstreamResponse> {
  const nextPlace = searchPlaces(searchFor(request, call, groups, entry, context, recheck), context)
  let best: Outcome | undefined
  /** Not reported: it may be the last. */
  let previous: Outcome | undefined
  let sent: SentBody | undefined
  let place: Place | undefined
  const failed: Upstream[] = []
  try {
    for (;;) {
      if (best !== undefined && isSentOnce(call)) break
      const next = nextPlace(best && { hasResponse: 'forwarded' in best })
      const taken = next instanceof Promise ? await next : next
      if (taken === undefined) break
      if (previous !== undefined) reportFallback(context, entry.requestId, previous)
      place = taken.place
      const { attempt } = taken
      entry.attempt = attempt
      sent = bodyFor(attempt, entry, sent)
      const { body } = sent
      if (body?.bytes !== undefined) await giveWayAfter(body.bytes)
      const outcome = await ask(request, body, entry, attempt, context)
      entry.made.push({ ...attempt, status: outcome.status })
      note(outcome, failed, context)
      if ('forwarded' in outcome && !isWorthAnother(outcome.status, { hasFailedBefore: best !== undefined })) {
        abort(best)
        entry.place = place
        return outcome.forwarded
      }
      // Requests that keep a place while they wait for another could wait for each other.
      if ('fault' in outcome) place.endAfterCall(0)
      else place.end(0)
      const isBetter = best === undefined || usefulnessOf(outcome) >= usefulnessOf(best)
      previous = isBetter ? outcome : undefined
      if (!isBetter) reportFallback(context, entry.requestId, outcome)
      abort(isBetter ? best : outcome)
      if (isBetter) best = outcome
    }
  } catch (error) {
    place?.endAfterCall(undefined)
    abort(best)
    throw error
  }
  if (best === undefined)
    throw new Fault('unavailable', 'The inference server was removed; retry', { reason: 'upstream_removed' })
  entry.attempt = best.attempt
  if ('fault' in best) throw best.fault
  return best.forwarded
}

/** Written once for attempts that send the same. */
type SentBody = { model: string | undefined; priority: number | undefined; body: OutgoingBody | undefined }

function bodyFor({ model, upstream }: Attempt, { call, principal }: LedgerEntry, last: SentBody | undefined): SentBody {
  const priority = call.path.takesPriority ? priorityFor(upstream, principal.key.queueClass) : undefined
  if (last !== undefined && last.model === model && last.priority === priority) return last
  return { model, priority, body: outgoingBody(call, model, priority) }
}

/** A large form passes on as it arrives, so there is nothing to send to another upstream. */
function isSentOnce({ form }: Call): boolean {
  return form !== undefined && form.bytes === undefined
}

function searchFor(
  { signal, headers }: Request,
  call: Call,
  groups: readonly AttemptGroup[],
  { principal, attribution, startedAt }: LedgerEntry,
  { budgets }: FallbackContext,
  recheck: () => void,
) {
  const { key } = principal
  return {
    groups,
    key,
    counter: counterOf(principal, attribution),
    signal,
    recheck,
    budgets: budgets.running.countersOf(key, askedOf(principal, attribution, call)),
    cost: expectedTokens(call),
    affinityKeyFor: affinityKeyFor(call, headers),
    waitsUntil: startedAt + key.queueSeconds * 1_000,
  }
}

/** Whose turn it is. */
function counterOf({ key }: Principal, attribution: string | null): string {
  return key.fairBy === 'attribution' && attribution !== null ? `${key.id}\n${attribution}` : key.id
}

async function ask(
  request: Request,
  body: OutgoingBody | undefined,
  { requestId, call, principal, attribution }: LedgerEntry,
  attempt: Attempt,
  context: UpstreamContext,
): Promise<Outcome> {
  const { path, upstreamPath, sessionId, form } = call
  const { method, query, besideVersion } = path
  try {
    const { sendFairnessId } = attempt.upstream
    const moreHeaders = sendFairnessId ? fairnessHeadersFor(counterOf(principal, attribution)) : undefined
    const outgoing = { method, path: upstreamPath, besideVersion, query, body, requestId, sessionId, moreHeaders }
    const forwarded = await forward(request, outgoing, attempt.upstream, context)
    return { attempt, status: forwarded.response.status, forwarded }
  } catch (error) {
    const refused = form?.failure()
    if (refused !== undefined) throw refused
    if (request.signal.aborted || !(error instanceof Fault)) throw error
    return { attempt, status: statusOf(error), fault: error }
  }
}

/** What the next requests should know of the upstream. One request with many models is one failure. */
function note(outcome: Outcome, failed: Upstream[], { circuits, monotonic }: PlaceContext): void {
  const { attempt, status } = outcome
  if ('fault' in outcome || status >= 500) {
    if (!failed.includes(attempt.upstream)) circuits.noteFailure(attempt.upstream, 'forwarded' in outcome, monotonic())
    failed.push(attempt.upstream)
    return
  }
  circuits.noteSuccess(attempt.upstream)
  if (status !== 429) return
  const seconds = Number(outcome.forwarded.response.headers.get('retry-after'))
  if (seconds > 0) circuits.noteLimited(attempt.upstream, attempt.model, seconds * 1_000, monotonic())
}

/**
 * After too many requests or a failure of the server, another attempt may do better; after that, also where an upstream
 * cannot serve.
 */
function isWorthAnother(status: number, { hasFailedBefore }: { hasFailedBefore: boolean }): boolean {
  return status === 429 || status >= 500 || (hasFailedBefore && unservedStatuses.includes(status))
}

/**
 * How much a failure helps the caller: most if it says when to retry, then if it asks the client to slow down, then if
 * a retry may help.
 */
function usefulnessOf(outcome: Outcome): number {
  const { status } = outcome
  const saysWhen = 'forwarded' in outcome && outcome.forwarded.response.headers.has('retry-after')
  if (saysWhen && (status === 429 || status === 503)) return 3
  if (status === 429) return 2
  return status >= 500 ? 1 : 0
}

function abort(outcome: Outcome | undefined): void {
  if (outcome !== undefined && 'forwarded' in outcome) outcome.forwarded.abort()
}

function reportFallback({ log, metrics }: FallbackContext, requestId: string, outcome: Outcome): void {
  const { upstream, model } = outcome.attempt
  metrics.countFailover(upstream.name)
  const reason = 'fault' in outcome ? outcome.fault.message : `status ${outcome.status}`
  log('warn', 'upstream_fallback', { request_id: requestId, upstream: upstream.name, model, reason })
}
