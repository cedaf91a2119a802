// The token endpoint (reference: Token exchange): one exchange from top to bottom, as fields, pipeline steps, minting,
// audit and response.

import { serverFailureOf } from '../../db/remote/server-errors.ts'
import type { AuditRow } from '../../db/schema/record-schema.ts'
import type { Writer } from '../../db/write/write.ts'
import { describeError, Fault } from '../fault.ts'
import { hasMediaType, readBody } from '../http/body.ts'
import type { RequestInfo } from '../http/endpoint.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import { exchangeAttemptsMax, exchangeBodyBytesLimit } from '../limits.ts'
import type { Log } from '../observe/log.ts'
import { requireWritable, type WriteState } from '../observe/write-check.ts'
import { type IssuedAccessToken, mintAccessToken } from '../tokens/access-token.ts'
import { parseJwtText } from '../tokens/jwt-text.ts'
import type { SigningKeys } from '../tokens/signing-keys.ts'
import { auditRecordOf, type ClaimRecorder, type Decision } from './audit-record.ts'
import { readFormFields, readJsonFields } from './exchange-fields.ts'
import {
  type ExchangeForm,
  type Grant,
  jwtBearer,
  jwtBearerFor,
  jwtBearerGrant,
  parseFields,
  tokenExchange,
} from './grants.ts'
import type { ClockDifferences } from './issuer/clock-difference.ts'
import type { Issuer } from './issuer/issuer.ts'
import type { IssuerKeys } from './issuer/issuer-keys.ts'
import { issuedReply, refusalReply } from './oauth-reply.ts'
import { type AcceptedFacts, type Dependencies, type Facts, judge } from './pipeline.ts'
import { isCurrent, readBinding, readDeletedBinding, type TrustRegistry } from './policy-binding.ts'
import type { ReplayGuard } from './replay.ts'
import { type SubjectToken, secondsLeft } from './subject-token/claims.ts'
import { isReason, isRefusal, type Refusal, refuse } from './subject-token/refusal.ts'

/** What an exchange needs. */
export type ExchangeContext = WriteState & {
  registry: TrustRegistry
  issuerKeys: IssuerKeys
  clockDifferences: ClockDifferences
  outbound: { insecureIssuers: boolean }
  replayGuard: ReplayGuard
  claimRecorder: ClaimRecorder
  exchangeRate: RateLimiter
  signingKeys: SigningKeys
  follow: { recent: () => Promise<void> | undefined }
  writer: Pick<Writer, 'appendAudit'>
  config: { jwtBearer: boolean }
  baseUrl: string
  now: () => number
  log: Log
}

type GrantDecision = Decision & { grant: Grant }

/**
 * Exchanges a subject token for an access token. Commits every outcome to the audit before it responds. A change of the
 * policy, its issuer, key or organization takes effect up to the moment of minting (reference: Policy lifecycle).
 */
export async function exchangeToken(request: Request, context: ExchangeContext, info: RequestInfo): Promise<Response> {
  checkRate(info, context)
  const checking = requireWritable(context)
  if (checking !== undefined) await checking
  const startedAt = context.now()
  const decision = await decide(request, context, info)
  // Undefined for all but the first exchanges.
  const preparing = context.claimRecorder.prepare()
  if (preparing !== undefined) await preparing
  const record = auditRecordOf(decision, info, startedAt, context.claimRecorder)
  const { outcome, grant } = decision
  if (isRefusal(outcome)) logRefusal(record, grant, context)
  await context.writer.appendAudit(record)
  return isRefusal(outcome) ? refusalReply(outcome, info.requestId, grant) : issuedReply(outcome, grant)
}

/**
 * Runs before the body is read. A request over the limit must cost almost nothing, so it leaves a log line but no audit
 * record.
 */
function checkRate({ clientAddress }: RequestInfo, { exchangeRate, now }: ExchangeContext): void {
  const seconds = exchangeRate.take(clientAddress, now())
  if (seconds === 0) return
  throw new Fault('rate_limited', 'Too many exchanges from this address; try again later', {
    reason: 'rate_limited',
    headers: { 'retry-after': String(seconds) },
  })
}

/**
 * Repeats the exchange if its policy, issuer, key or organization changes meanwhile, at most `exchangeAttemptsMax`
 * times.
 * @throws only when the database server does not respond
 */
async function decide(request: Request, context: ExchangeContext, info: RequestInfo): Promise<GrantDecision> {
  let known: Omit<GrantDecision, 'outcome'> = { grant: tokenExchange }
  try {
    const { grant, form } = await readRequest(request, context)
    known = { grant }
    if (isRefusal(form)) return { ...known, outcome: form }
    const refreshing = context.follow.recent()
    if (refreshing !== undefined) await refreshing
    const jwt = parseJwtText(form.subjectToken)
    known = { grant, form, jwt }
    for (let attempt = 1; ; attempt++) {
      const { registry } = context
      const binding = readBinding(registry, form.policyId) ?? (await readDeletedBinding(registry, form.policyId))
      const facts: Facts = { subjectToken: form.subjectToken, jwt, binding }
      known = { grant, form, jwt, binding, facts }
      const outcome = await judgeAndMint(facts, context)
      const hasChanged = isRefusal(outcome) && outcome.refused === 'changed_meanwhile'
      if (!hasChanged || attempt === exchangeAttemptsMax) return { ...known, outcome }
    }
  } catch (error) {
    // Without the database, there is nothing to judge by, and no place for a record.
    if (serverFailureOf(error) !== undefined) throw error
    return { ...known, outcome: refusalFromError(error, context, info) }
  }
}

/** Token exchange takes a form alone (reference: Token exchange). */
async function readRequest(
  request: Request,
  { config }: ExchangeContext,
): Promise<{ grant: Grant; form: ExchangeForm | Refusal }> {
  const isForm = hasMediaType(request, 'application/x-www-form-urlencoded')
  if (!isForm && !(config.jwtBearer && hasMediaType(request, 'application/json')))
    return { grant: tokenExchange, form: refuse('content_type') }
  const body = await readBody(request, exchangeBodyBytesLimit)
  const sent = isForm ? readFormFields(body) : await readJsonFields(body)
  if (isRefusal(sent)) return { grant: jwtBearer, form: sent }
  // JSON whose grant type is not text can only be meant for this grant.
  const isOfWrongType = sent.problems.some(({ refusal }) => refusal.refused === 'field_type')
  const named = sent.values.get('grant_type')
  const isJwtBearer = config.jwtBearer && (named === jwtBearerGrant || (named === undefined && isOfWrongType))
  if (!isForm && !isJwtBearer)
    return named || sent.values.has('subject_token')
      ? { grant: tokenExchange, form: refuse('content_type') }
      : { grant: jwtBearer, form: refuse('field_missing', 'grant_type') }
  const grant = isJwtBearer ? jwtBearerFor(sent) : tokenExchange
  return { grant, form: parseFields(grant, sent) }
}

async function judgeAndMint(facts: Facts, context: ExchangeContext): Promise<IssuedAccessToken | Refusal> {
  // Such a policy lets people sign in to the admin page. Nothing may be issued that acts as a management key.
  if (facts.binding !== undefined && facts.binding.key.kind !== 'inference') return refuse('policy_signs_in')
  const accepted = await judge(facts, dependenciesOf(context))
  noteClock(facts, accepted, context)
  if (isRefusal(accepted)) return accepted
  return isCurrent(context.registry, accepted.binding) ? mint(accepted, context) : refuse('changed_meanwhile')
}

/** Takes times of verified tokens only. The times are checked after the signature. */
function noteClock({ token, issuer }: Facts, outcome: AcceptedFacts | Refusal, context: ExchangeContext): void {
  const isVerified =
    !isRefusal(outcome) || outcome.refused === 'issued_in_future' || outcome.refused === 'not_yet_valid'
  if (isVerified && token !== undefined && issuer !== undefined)
    context.clockDifferences.note(issuer.id, token, context.now())
}

function dependenciesOf({ now, outbound, issuerKeys }: ExchangeContext): Dependencies {
  return { now, insecureIssuers: outbound.insecureIssuers, issuerKeys, checkReplay: () => undefined }
}

/**
 * Issues a token that lives as long as the policy allows, but never longer than the subject token (reference: Access
 * token). It reads the clock again.
 */
function mint(
  { token, attribution, binding: { policy, key, issuer } }: AcceptedFacts,
  context: ExchangeContext,
): Refusal | Promise<IssuedAccessToken | Refusal> {
  const now = context.now()
  const lifetimeSeconds = Math.min(policy.maxLifetimeSeconds, secondsLeft(token.payload, now))
  if (lifetimeSeconds < 1) return refuse('expired', 'less than a second left')
  const noted = policy.replayProtection ? noteUse(token, issuer, context, now) : undefined
  if (noted !== undefined && isRefusal(noted)) return noted
  const { allowedModels, allowedPresets } = policy
  const subject = {
    subject: token.subject,
    keyId: key.id,
    policyId: policy.id,
    issuerId: issuer.id,
    attribution,
    allowedModels,
    allowedPresets,
  }
  const minting = mintAccessToken(context, subject, lifetimeSeconds, now)
  if (noted === undefined) return minting
  // Awaiting both together handles the rejection of one if the other fails.
  return Promise.all([minting, noted.kept]).then(([issued, replayed]) => replayed ?? issued)
}

/** The last check before minting: refuses the second exchange of the same token, even a concurrent one. */
function noteUse({ payload }: SubjectToken, { id: issuerId }: Issuer, { replayGuard }: ExchangeContext, now: number) {
  // `exp` can have a fraction of any length; the database stores whole milliseconds.
  const expiresAt = Math.ceil((payload.exp as number) * 1_000)
  return replayGuard.use({ issuerId, id: payload.jti, expiresAt }, now)
}

function refusalFromError(error: unknown, { log }: ExchangeContext, { requestId }: RequestInfo): Refusal {
  if (error instanceof Fault && error.reason !== undefined && isReason(error.reason)) return refuse(error.reason)
  log('error', 'exchange_failed', { request_id: requestId, reason: describeError(error) })
  return refuse('unforeseen')
}

function logRefusal(record: AuditRow, grant: Grant, { log }: ExchangeContext): void {
  log('warn', 'exchange_refused', {
    request_id: record.requestId,
    grant: grant.name,
    client_address: record.clientAddress,
    error: record.error ?? undefined,
    reason: record.reason ?? undefined,
    detail: record.detail ?? undefined,
    policy: record.policyNamed ?? undefined,
    issuer_id: record.issuerId ?? undefined,
    subject: record.subject ?? undefined,
  })
}
