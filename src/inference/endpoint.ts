// Inference through Latchkey (reference: Inference), from top to bottom.
import type { RequestInfo, ServedRoute, UnsettledCall } from '../http/endpoint.ts'
import { messagesErrorReply } from '../http/reply.ts'
import { type AdmissionContext, checkBudget, checkPreset, refresh, takeRate } from '../keys/admission.ts'
import { attributionOfRequest } from '../keys/attribution.ts'
import { authenticateInference, type BearerContext, type Principal, showsUpstreams } from '../keys/bearer.ts'
import type { WriteState } from '../observe/write-check.ts'
import type { PresetRegistry, Presets } from '../presets/versions.ts'
import { type Budgets, remainingHeaders } from '../spending/budgets.ts'
import { inferencePaths, type Target } from '../values/inference-paths.ts'
import { askedOf, holdBudgets } from './budget-hold.ts'
import { type Call, completeCall, readSentBody } from './call.ts'
import { type FallbackContext, forwardToBest } from './fallback.ts'
import { type LedgerContext, type LedgerEntry, openLedgerEntry } from './ledger.ts'
import { checkNamedModels } from './model-names.ts'
import type { Report } from './reported-response.ts'
import { reportRouting, requestsRoutingReport } from './routing-report.ts'
import { respond, settleFailure, type UnsettledRequest } from './settlement.ts'
import { rejectBackground, rejectSharedState } from './shared-state.ts'
import { findPreviousResponse, findStoredResponse, keepAt, type StoredResponseContext } from './stored-responses.ts'
import type { UpstreamResponse } from './upstream/forward.ts'
import { rejectLoop } from './upstream/forwarding-loop.ts'
import { preferUpstreams, readPreferences } from './upstream/preferences.ts'
import { type AttemptGroup, route, type UpstreamRegistry } from './upstream/targets.ts'
import { checkGrace, type InferenceGrace, isRefreshed, requireRecordable } from './without-database.ts'

/** What an inference request needs. */
export type InferenceContext = BearerContext &
  AdmissionContext &
  FallbackContext &
  LedgerContext &
  StoredResponseContext &
  WriteState & {
    registry: PresetRegistry & UpstreamRegistry
    budgets: Budgets
    presets: Presets
    config: { bodyBytesMax: number; refusesSharedState: boolean }
    follow: { recent: () => Promise<void> | undefined }
    grace: InferenceGrace | undefined
  }

export const inferenceRoutes: ServedRoute<InferenceContext>[] = Object.entries(inferencePaths).map(([to, path]) => ({
  method: path.method,
  path: path.endpoint,
  servesInGrace: true,
  handle: (request, context, info) => infer(to as Target, request, context, info),
  ...(path.errors === 'messages' ? { toResponse: messagesErrorReply } : {}),
}))

/** The usage is committed to the ledger before the client sees the end of the response. */
async function infer(to: Target, request: Request, context: InferenceContext, info: RequestInfo): Promise<Response> {
  const { ofResponse } = inferencePaths[to]
  const authenticated = authenticateInference(request, context)
  const caller = authenticated instanceof Promise ? await authenticated : authenticated
  const unsettled = unsettledOf(caller)
  info.unsettled = unsettled
  const checking = requireRecordable(context)
  if (checking !== undefined) await checking
  takeRate(caller.key, context)
  const sent = await readSentBody(to, request, context.config.bodyBytesMax)
  unsettled.model = sent.fields.model
  const refreshing = context.follow.recent()
  const isStale = refreshing === undefined ? info.isStale === true : !(await isRefreshed(refreshing, context))
  const principal = refresh(caller, context)
  const attribution = attributionOfRequest(principal, request)
  const stored = ofResponse ? await findStoredResponse(info.params.response ?? '', principal, context) : undefined
  if (stored === undefined) checkPreset(principal, sent.preset?.slug)
  checkBudget(principal.key, context)
  const within = { workspaceId: principal.key.workspaceId, responseId: stored?.id }
  const completing = completeCall(to, sent, within, context)
  const completed = completing instanceof Promise ? await completing : completing
  const preferences = readPreferences(completed.fields.provider, context.registry)
  const call = preferences === undefined ? completed : withProvider(completed, preferences.rest)
  const checkingModels = checkNamedModels(principal, call)
  if (checkingModels !== undefined) await checkingModels
  rejectBackground(call)
  if (context.config.refusesSharedState) await rejectSharedState(call)
  const finding = findPreviousResponse(call, principal, context)
  const previous = finding && (await finding)
  rejectLoop(request, context)
  checkBudgets(principal, attribution, call, context)
  checkGrace(isStale, principal.key, askedOf(principal, attribution, call), context)
  const all: AttemptGroup[] =
    stored === undefined
      ? keepAt(previous?.upstream, route(context.registry, call.models, principal.key.id))
      : [{ model: undefined, upstreams: [stored.upstream] }]
  const groups = preferences === undefined ? all : preferUpstreams(all, preferences)
  const recheck = () => checkBudgets(refresh(caller, context), attribution, call, context)
  info.peer.liftIdleLimit(request)
  const held = { call, attribution, signal: request.signal, recheck }
  const holding = holdBudgets(principal, held, context)
  const release = holding instanceof Promise ? await orRestore(holding, request, info) : holding
  // From here on, the ledger has it.
  info.unsettled = undefined
  const entry = openLedgerEntry(context, info.requestId, principal, call, attribution, release)
  const moreHeaders = headersFor(principal, attribution, call, context)
  const report = reportFor(request, sent.fields.model, { entry, groups }, context)
  const pending = { request, info, entry, context, moreHeaders, report }
  let forwarded: UpstreamResponse
  try {
    forwarded = await forwardToBest(request, call, groups, entry, context, recheck)
  } catch (error) {
    return settleFailure(error, pending)
  }
  try {
    return await respond(forwarded, withAttempt(pending, entry, context))
  } catch (error) {
    // Otherwise the end of the response releases it.
    release()
    throw error
  }
}

/** A request that is refused after it has waited leaves its connection as it was. */
async function orRestore<Result>(waiting: Promise<Result>, request: Request, { peer }: RequestInfo): Promise<Result> {
  try {
    return await waiting
  } catch (error) {
    peer.restoreIdleLimit(request)
    throw error
  }
}

function unsettledOf({ key, accessToken }: Principal): UnsettledCall {
  return { organizationId: key.organizationId, keyId: key.id, policyId: accessToken?.policyId ?? null, model: null }
}

function withProvider(call: Call, provider: unknown): Call {
  return { ...call, fields: { ...call.fields, provider } }
}

/** What the response is to say of its way; undefined where the path has no place for it, or the caller does not ask. */
function reportFor(
  { headers }: Request,
  requested: unknown,
  { entry, groups }: { entry: LedgerEntry; groups: readonly AttemptGroup[] },
  context: InferenceContext,
): Report | undefined {
  const { call, principal, made } = entry
  if (call.path.reportIn === undefined || !requestsRoutingReport(headers)) return undefined
  return () => reportRouting(requested, groups, made, { showsUpstreams: showsUpstreams(principal, context) })
}

/** With headers that say which upstream responded, where the organization wants its callers to know. */
function withAttempt(
  pending: UnsettledRequest,
  { principal, attempt, made }: LedgerEntry,
  context: InferenceContext,
): UnsettledRequest {
  if (!showsUpstreams(principal, context)) return pending
  const headers = {
    'x-latchkey-upstream': (attempt?.upstream.name ?? '').toWellFormed().replace(/[^ -~]|%/gu, encodeURIComponent),
    'x-latchkey-attempt': String(made.length),
  }
  return { ...pending, moreHeaders: { ...pending.moreHeaders, ...headers } }
}

/** Of the key, and those that are objects. @throws Fault as `checkBudget` and `Budgets.check` */
function checkBudgets(principal: Principal, attribution: string | null, call: Call, context: InferenceContext): void {
  checkBudget(principal.key, context)
  const { registry, budgets, now } = context
  if (budgets.all().length === 0) return
  const asking = askedOf(principal, attribution, call)
  budgets.check(principal.key, asking, (model) => registry.priceOf(model) !== undefined, now())
}

const none: Readonly<Record<string, string>> = Object.freeze({})

/** What remained when the request began, where the organization wants its callers to know. */
function headersFor(principal: Principal, attribution: string | null, call: Call, context: InferenceContext) {
  const { key } = principal
  const { registry, budgets, now } = context
  if (registry.organizations.get(key.organizationId)?.budgetHeaders !== true) return none
  return remainingHeaders(budgets.remainingFor(key, askedOf(principal, attribution, call), now()))
}
