// The ledger entry of one inference request: opened when it is forwarded, written once when it ends. The row is
// committed before the response ends.
import type { UsageRow } from '../../db/schema/record-schema.ts'
import { isCostUnknown } from '../../db/schema/unknown-cost.ts'
import type { Writer } from '../../db/write/write.ts'
import { describeError, withoutKeysAndTokens } from '../fault.ts'
import type { KeyRegistry, Principal } from '../keys/bearer.ts'
import type { KeyRates } from '../keys/key-rates.ts'
import type { Spending } from '../keys/spending.ts'
import { modelCharactersMax } from '../limits.ts'
import type { Log } from '../observe/log.ts'
import type { Budgets } from '../spending/budgets.ts'
import { storableText } from '../values/bytes.ts'
import { recordedText } from '../values/recorded-text.ts'
import type { Call } from './call.ts'
import { costOf, type PriceList, priceInForce } from './prices.ts'
import type { Place } from './queue/dispatch.ts'
import type { MadeAttempt } from './routing-report.ts'
import { storedResponseOf } from './stored-responses.ts'
import { unitsOf } from './units.ts'
import type { Attempt } from './upstream/targets.ts'
import { type Inspection, raiseToSeen, type TokenCounts } from './usage.ts'

/** How a call ended. `status` is what the caller got, or `statusClientLeft`. `callEnd`: see `PassageEnd`. */
export type RequestEnd = {
  status: number
  completed: boolean
  clientLeft: boolean
  callEnd?: Promise<void> | undefined
  inspected: Inspection
  /** Why no upstream gave a response. */
  error?: string | undefined
}
export const nothingSeen: Inspection = { model: undefined, counts: undefined }

/** What an entry is written with. */
export type LedgerContext = {
  writer: Pick<Writer, 'appendUsage' | 'appendStoredResponse'>
  spending: Spending
  budgets: Pick<Budgets, 'add' | 'all' | 'estimates'>
  keyRates: KeyRates
  registry: Pick<KeyRegistry, 'keys'> & { readonly priceOf: PriceList }
  now: () => number
  log: Log
}

/** Times in milliseconds. */
export type LedgerEntry = {
  readonly context: LedgerContext
  readonly requestId: string
  readonly principal: Principal
  readonly call: Call
  /** Whose usage it is, as it is recorded. */
  readonly attribution: string | null
  readonly startedAt: number
  /** The attempt in progress; at the end, the one whose response the caller got. */
  attempt: Attempt | undefined
  /** Those that have ended, in order. */
  readonly made: MadeAttempt[]
  /** Its place at the upstream, which is given back before the row is written, or when the call ends there. */
  place: Place | undefined
  firstByteAt: number | undefined
  /** Gives back what it holds of budgets. */
  readonly release: () => void
}

export function openLedgerEntry(
  context: LedgerContext,
  requestId: string,
  principal: Principal,
  call: Call,
  attribution: string | null,
  release: () => void,
): LedgerEntry {
  return {
    context,
    requestId,
    principal,
    call,
    attribution,
    startedAt: context.now(),
    attempt: undefined,
    place: undefined,
    firstByteAt: undefined,
    made: [],
    release,
  }
}

/**
 * Commits the row, and adds what was spent to the totals of the key, whether or not the commit succeeds: the upstream
 * has done its work.
 * @throws the error of a failed commit, after logging the row
 */
export async function writeLedgerEntry(entry: LedgerEntry, ending: RequestEnd): Promise<void> {
  const { writer, spending, keyRates, now, log } = entry.context
  const row = rowOf(entry, ending)
  const tokens = row.totalTokens ?? undefined
  if (ending.callEnd === undefined) entry.place?.end(tokens)
  else entry.place?.endAfterCall(tokens, ending.callEnd)
  const stored = entry.call.path.storesResponse ? storedOf(entry, ending) : undefined
  let isCommitted = false
  try {
    const appending = writer.appendUsage(row)
    // Both share a commit.
    await (stored === undefined ? appending : Promise.all([appending, writer.appendStoredResponse(stored)]))
    isCommitted = true
    countForBudgets(entry, row)
  } catch (error) {
    log('error', 'usage_lost', { ...row, error: describeError(error) })
    throw error
  } finally {
    spending.add(row.keyId, row.at, row.costNanodollars ?? 0, isCommitted)
    keyRates.use(row.keyId, row.totalTokens ?? 0, now())
    entry.release()
  }
}

function storedOf({ call, principal, attempt, context }: LedgerEntry, { inspected, status }: RequestEnd) {
  const made = { status, keyId: principal.key.id, createdAt: context.now(), upstreamId: attempt?.upstream.id }
  return storedResponseOf(call, inspected, made)
}

/** Budgets count what is in the ledger, and nothing else. */
function countForBudgets({ context: { budgets, registry }, principal, call }: LedgerEntry, row: UsageRow): void {
  if (budgets.all().length === 0) return
  const { policyId, attribution, sessionId: session, model, at, totalTokens, costNanodollars } = row
  const requestsWithoutCost = isCostUnknown(row) ? 1 : 0
  const amounts = { requests: 1, tokens: totalTokens ?? 0, nanodollars: costNanodollars ?? 0, requestsWithoutCost }
  budgets.add(registry.keys.get(row.keyId) ?? principal.key, { policyId, attribution, session, model, at, amounts })
  const seen = { prompt: row.promptTokens, completion: row.completionTokens, nanodollars: amounts.nanodollars }
  // A response without usage costs nothing, as far as anybody can know.
  if (row.usageSource === 'upstream' || (row.completed && row.status < 300))
    budgets.estimates.note(call.models[0] ?? '', call.json?.bytes.byteLength ?? 0, seen)
}

function rowOf(entry: LedgerEntry, { status, completed, clientLeft, inspected, error }: RequestEnd): UsageRow {
  const { context, requestId, call, attempt, attribution, startedAt, firstByteAt } = entry
  const { key, accessToken } = entry.principal
  const { model } = inspected
  const { counts, isEstimate } = call.path.isCharged ? countsFor(inspected, completed) : notCharged
  const units = unitsOf(call, status, inspected)
  const cost = costOfResponse(entry, model, isEstimate ? atLeast(counts) : counts, units)
  return {
    at: startedAt,
    requestId,
    organizationId: key.organizationId,
    workspaceId: key.workspaceId,
    keyId: key.id,
    policyId: accessToken?.policyId ?? null,
    issuerId: accessToken?.issuerId ?? null,
    subject: recordedText(accessToken?.subject),
    accessTokenId: accessToken?.id ?? null,
    endpoint: call.path.endpoint,
    model: recordedText((model ?? attempt?.model)?.slice(0, modelCharactersMax)),
    modelAsked: recordedText(call.models[0]),
    upstream: attempt?.upstream.name ?? null,
    presetVersion: call.presetVersion,
    status,
    streamed: call.streams,
    completed,
    clientLeft,
    promptTokens: counts?.promptTokens ?? null,
    completionTokens: counts?.completionTokens ?? null,
    totalTokens: counts?.totalTokens ?? null,
    cachedTokens: counts?.cachedTokens ?? null,
    reasoningTokens: counts?.reasoningTokens ?? null,
    costNanodollars: cost.nanodollars,
    usageSource: inspected.counts === undefined || !call.path.isCharged ? 'none' : 'upstream',
    estimated: isEstimate,
    unit: units === undefined ? null : (call.path.unit ?? null),
    units: units ?? null,
    price: cost.price,
    attempts: entry.made.length,
    error: error ?? (status < 400 ? null : (inspected.error ?? null)),
    // The clock can be set back in between.
    firstByteMilliseconds: firstByteAt === undefined ? null : Math.max(0, firstByteAt - startedAt),
    durationMilliseconds: Math.max(0, context.now() - startedAt),
    attribution,
    endUser: recordedText(call.said.endUser),
    sessionId: recordedText(call.said.sessionId),
    metadata: call.said.metadata === undefined ? null : storableText(withoutKeysAndTokens(call.said.metadata)),
  }
}

/** A response that only counts, or repeats the usage of another request. */
const notCharged = { counts: undefined, isEstimate: false }

/** A stream that did not end counts at least what was seen of it, no matter who ended it. */
function countsFor(
  { counts, tokensSeen = 0 }: Inspection,
  completed: boolean,
): { counts: TokenCounts | undefined; isEstimate: boolean } {
  if (completed || tokensSeen <= (counts?.completionTokens ?? 0)) return { counts, isEstimate: false }
  return { counts: raiseToSeen(counts, tokensSeen), isEstimate: true }
}

/** An unknown prompt costs nothing, so that the rest has a cost. */
function atLeast(counts: TokenCounts | undefined): TokenCounts | undefined {
  return counts === undefined ? undefined : { ...counts, promptTokens: counts.promptTokens ?? 0 }
}

/** The upstream's own figure, or else the price of the model that it names, or else of the model that was asked for. */
function costOfResponse(
  { context, call, attempt, startedAt }: LedgerEntry,
  model: string | undefined,
  counts: TokenCounts | undefined,
  units: number | undefined,
): { nanodollars: number | null; price: string | null } {
  if (counts?.costNanodollars != null) return { nanodollars: counts.costNanodollars, price: null }
  const { priceOf } = context.registry
  const row =
    counts === undefined && units === undefined
      ? undefined
      : ((model === undefined ? undefined : priceOf(model)) ??
        (attempt?.model === undefined ? undefined : priceOf(attempt.model)))
  if (row === undefined) return { nanodollars: null, price: null }
  const price = priceInForce(row, startedAt)
  const nanodollars = costOf(price, { counts, units }, call.path)
  return { nanodollars, price: nanodollars === null ? null : price.name }
}
