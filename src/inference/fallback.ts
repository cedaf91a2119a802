// Tries one inference server after the other. When all fail, the caller gets the failure that helps most.
import { Fault } from '../fault.ts'
import { giveWayAfter } from '../http/body.ts'
import { statusOf } from '../http/reply.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Call } from './call.ts'
import type { LedgerEntry } from './ledger.ts'
import { outgoingBody } from './outgoing-body.ts'
import { forward, type UpstreamContext, type UpstreamResponse } from './upstream/forward.ts'
import type { Attempt } from './upstream/targets.ts'

/** The response of an upstream, whose body is not read yet, or the fault of an attempt that got none. */
type Outcome = { attempt: Attempt; status: number } & ({ forwarded: UpstreamResponse } | { fault: Fault })
type FallbackContext = UpstreamContext & { log: Log; metrics: Pick<Metrics, 'countFailover'> }

/**
 * Statuses by which an upstream says only that it cannot serve the request: its credential, its path, or the model is
 * missing there.
 */
const unservedStatuses = [401, 402, 403, 404, 405]

/**
 * The first usable response, or else the most useful failure, the last among equals. It decides on the status and
 * headers: a response that has begun is final. The calls of all other attempts are aborted.
 * @throws Fault when the most useful failure is an attempt without a response
 */
export async function forwardToBest(
  request: Request,
  call: Call,
  attempts: readonly Attempt[],
  entry: LedgerEntry,
  context: FallbackContext,
): Promise<UpstreamResponse> {
  let best: Outcome | undefined
  let body: Uint8Array<ArrayBuffer> | undefined
  try {
    for (const attempt of attempts) {
      const isSameModel = attempt.model === entry.attempt?.model
      entry.attempt = attempt
      if (body === undefined || !isSameModel) body = outgoingBody(call, attempt.model)
      await giveWayAfter(body)
      const outcome = await ask(request, body, entry, attempt, context)
      if ('forwarded' in outcome && !isWorthAnother(outcome.status, { hasFailedBefore: best !== undefined })) {
        end(best)
        return outcome.forwarded
      }
      const isBetter = best === undefined || usefulnessOf(outcome) >= usefulnessOf(best)
      if (!isBetter || attempt !== attempts.at(-1)) reportFallback(context, entry.requestId, outcome)
      end(isBetter ? best : outcome)
      if (isBetter) best = outcome
    }
  } catch (error) {
    end(best)
    throw error
  }
  if (best === undefined) throw new Error('There is no attempt')
  entry.attempt = best.attempt
  if ('fault' in best) throw best.fault
  return best.forwarded
}

async function ask(
  request: Request,
  body: Uint8Array<ArrayBuffer>,
  {
    requestId,
    call: {
      path: { endpoint: path },
      sessionId,
    },
  }: LedgerEntry,
  attempt: Attempt,
  context: UpstreamContext,
): Promise<Outcome> {
  try {
    const forwarded = await forward(request, { path, body, requestId, sessionId }, attempt.upstream, context)
    return { attempt, status: forwarded.response.status, forwarded }
  } catch (error) {
    if (request.signal.aborted || !(error instanceof Fault)) throw error
    return { attempt, status: statusOf(error), fault: error }
  }
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

function end(outcome: Outcome | undefined): void {
  if (outcome !== undefined && 'forwarded' in outcome) outcome.forwarded.abort()
}

function reportFallback({ log, metrics }: FallbackContext, requestId: string, outcome: Outcome): void {
  const { upstream, model } = outcome.attempt
  metrics.countFailover(upstream.name)
  const reason = 'fault' in outcome ? outcome.fault.message : `status ${outcome.status}`
  log('warn', 'upstream_fallback', { request_id: requestId, upstream: upstream.name, model, reason })
}
