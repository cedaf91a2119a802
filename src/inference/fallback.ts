// Tries one inference server after the other. When none can answer, the caller gets the failure that helps most.
import { Fault } from '../fault.ts'
import { giveWayAfter } from '../http/body.ts'
import type { RequestInfo } from '../http/endpoint.ts'
import { statusOf } from '../http/reply.ts'
import type { Log } from '../observe/log.ts'
import type { InferenceRequest } from './call.ts'
import type { LedgerEntry } from './ledger.ts'
import { type Forwarded, forward, type UpstreamContext } from './upstream/forward.ts'
import { type Attempt, isWorthAnother, usefulnessOf } from './upstream/targets.ts'

/** An upstream's answer, whose body is still to be read, or ours where it gave none. */
type Outcome = { attempt: Attempt; status: number } & ({ forwarded: Forwarded } | { fault: Fault })

/**
 * The answer of the first attempt that gives a usable one, or else the most useful failure, the last of equals. Before the first byte
 * only: what has begun is not taken back. The calls of the other attempts are ended.
 * @throws Fault where the most useful failure is that an upstream gave no answer
 */
export async function forwardToBest(
  path: string,
  request: Request,
  { bodyFor, sessionId }: InferenceRequest,
  attempts: readonly Attempt[],
  entry: LedgerEntry,
  context: UpstreamContext & { log: Log },
  { requestId }: RequestInfo,
): Promise<Forwarded> {
  let kept: Outcome | undefined
  try {
    for (const attempt of attempts) {
      entry.attempt(attempt)
      const body = bodyFor(attempt.model)
      await giveWayAfter(body)
      const outgoing = { path, body, requestId, sessionId }
      const outcome = await ask(request, outgoing, attempt, context)
      if ('forwarded' in outcome && !isWorthAnother(outcome.status, { hasFailedBefore: kept !== undefined })) {
        end(kept)
        return outcome.forwarded
      }
      const isBetter = kept === undefined || helpOf(outcome) >= helpOf(kept)
      if (!isBetter || attempt !== attempts.at(-1)) logFallback(context, requestId, outcome)
      end(isBetter ? kept : outcome)
      if (isBetter) kept = outcome
    }
  } catch (error) {
    end(kept)
    throw error
  }
  if (kept === undefined) throw new Error('There is no attempt')
  entry.attempt(kept.attempt)
  if ('fault' in kept) throw kept.fault
  return kept.forwarded
}

async function ask(
  request: Request,
  outgoing: Parameters<typeof forward>[1],
  attempt: Attempt,
  context: UpstreamContext,
): Promise<Outcome> {
  try {
    const forwarded = await forward(request, outgoing, attempt.upstream, context)
    return { attempt, status: forwarded.response.status, forwarded }
  } catch (error) {
    if (request.signal.aborted || !(error instanceof Fault)) throw error
    return { attempt, status: statusOf(error), fault: error }
  }
}

function helpOf(outcome: Outcome): number {
  const saysWhen = 'forwarded' in outcome && outcome.forwarded.response.headers.has('retry-after')
  return usefulnessOf(outcome.status, { saysWhen })
}

function end(outcome: Outcome | undefined): void {
  if (outcome !== undefined && 'forwarded' in outcome) outcome.forwarded.abort()
}

function logFallback({ log }: { log: Log }, requestId: string, outcome: Outcome): void {
  const { upstream, model } = outcome.attempt
  const reason = 'fault' in outcome ? outcome.fault.message : `status ${outcome.status}`
  log('warn', 'upstream_fallback', { request_id: requestId, upstream: upstream.name, model, reason })
}
