// The token endpoint (reference: Token exchange), one exchange from top to bottom: form, the steps of the pipeline, minting, audit, reply.
import { hash } from 'node:crypto'
import type { AuditRow } from '../../db/schema.ts'
import type { Writer } from '../../db/write.ts'
import { describeError, Fault, withoutSecrets } from '../fault.ts'
import { hasMediaType, readBody } from '../http/body.ts'
import type { RequestInfo } from '../http/endpoint.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import { json } from '../http/reply.ts'
import { claimCharactersMax, exchangeAttemptsMax, exchangeBodyBytesLimit } from '../limits.ts'
import type { Log } from '../observe/log.ts'
import { type IssuedAccessToken, mintAccessToken } from '../tokens/access-token.ts'
import { type JwtText, parseJwtText } from '../tokens/jwt-text.ts'
import type { SigningKeys } from '../tokens/signing-keys.ts'
import { storableText } from '../values/bytes.ts'
import { accessTokenType, parseExchangeForm } from './exchange-form.ts'
import type { Issuer, IssuerKeys } from './issuer/issuer-keys.ts'
import { type Accepted, type Dependencies, judge } from './pipeline.ts'
import { isCurrent, type PolicyBinding, readBinding, type TrustRegistry } from './policy-binding.ts'
import type { ReplayGuard } from './replay.ts'
import { type SubjectToken, secondsLeft } from './subject-token/claims.ts'
import {
  isReason,
  isRefusal,
  noStore,
  oauthErrorOf,
  type Refusal,
  refusalReply,
  refuse,
} from './subject-token/refusal.ts'

/** What an exchange needs. */
export type ExchangeContext = {
  registry: TrustRegistry
  issuerKeys: IssuerKeys
  outbound: { insecureIssuers: boolean }
  replayGuard: ReplayGuard
  exchangeRate: RateLimiter
  signingKeys: SigningKeys
  writer: Pick<Writer, 'appendAudit'>
  baseUrl: string
  now: () => number
  log: Log
}

/**
 * Exchanges a subject token for an access token. Every outcome is committed to the audit before the answer goes out; what is
 * refused, paused, deleted or changed by then is judged as it stands at the moment of minting (reference: Policy lifecycle).
 */
export async function exchangeToken(request: Request, context: ExchangeContext, info: RequestInfo): Promise<Response> {
  checkRate(info, context)
  const record = emptyRecord(info, context.now())
  let outcome: IssuedAccessToken | Refusal
  try {
    outcome = await exchange(request, context, record)
  } catch (error) {
    outcome = refusalFromError(error, context, info)
  }
  if (isRefusal(outcome)) return refused(outcome, context, record)

  await context.writer.appendAudit({
    ...record,
    outcome: 'issued',
    accessTokenId: outcome.id,
    accessTokenExpiresAt: outcome.expiresAt,
  })
  const reply = {
    access_token: outcome.text,
    issued_token_type: accessTokenType,
    token_type: 'Bearer',
    expires_in: outcome.lifetimeSeconds,
    scope: 'inference',
  }
  return json(200, reply, noStore)
}

/** Before anything is read: what comes too often is to cost next to nothing, so it leaves a line in the log and no audit record. */
function checkRate({ clientAddress }: RequestInfo, { exchangeRate, now }: ExchangeContext): void {
  const seconds = exchangeRate.take(clientAddress, now())
  if (seconds === 0) return
  throw new Fault('rate_limited', 'Too many exchanges from this address; try again later', {
    reason: `rate_limited ${clientAddress}`,
    headers: { 'retry-after': String(seconds) },
  })
}

async function exchange(
  request: Request,
  context: ExchangeContext,
  record: AuditRow,
): Promise<IssuedAccessToken | Refusal> {
  if (!hasMediaType(request, 'application/x-www-form-urlencoded')) return refuse('content_type')
  const form = parseExchangeForm(await readBody(request, exchangeBodyBytesLimit))
  if (isRefusal(form)) return form
  record.policyNamed = form.policyId
  record.subjectTokenSha256 = hash('sha256', form.subjectToken, 'hex')
  const jwt = parseJwtText(form.subjectToken)
  if (jwt !== undefined) recordClaims(record, jwt)

  for (let attempt = 0; attempt < exchangeAttemptsMax; attempt++) {
    const binding = readBinding(context.registry, form.policyId)
    // Before the token is judged: what comes under a policy is for its organization to see, whatever was sent.
    if (binding !== undefined) recordBinding(record, binding)
    const accepted = await judge({ subjectToken: form.subjectToken, jwt, binding }, dependenciesOf(context))
    if (isRefusal(accepted)) return accepted
    if (isCurrent(context.registry, accepted.binding)) return mint(accepted, context)
  }
  return refuse('changed_meanwhile')
}

function dependenciesOf({ now, outbound, issuerKeys }: ExchangeContext): Dependencies {
  return { now, insecureIssuers: outbound.insecureIssuers, issuerKeys, checkReplay: () => undefined }
}

/** No longer than the policy allows, and never longer than the subject token (reference: Access token). The time is taken afresh. */
async function mint(
  { token, binding: { policy, key, issuer } }: Accepted,
  context: ExchangeContext,
): Promise<IssuedAccessToken | Refusal> {
  const now = context.now()
  const lifetimeSeconds = Math.min(policy.maxLifetimeSeconds, secondsLeft(token.payload, now))
  if (lifetimeSeconds < 1) return refuse('expired', 'less than a second left')
  const noted = policy.replayProtection ? noteUse(token, issuer, context, now) : undefined
  if (noted !== undefined && isRefusal(noted)) return noted
  const { allowedModels, allowedPresets } = policy
  const bearer = { subject: token.subject, keyId: key.id, policyId: policy.id, issuerId: issuer.id }
  const subject = { ...bearer, allowedModels, allowedPresets }
  // Both at once, so that neither is left alone with its failure when the other fails.
  const [issued] = await Promise.all([mintAccessToken(context, subject, lifetimeSeconds, now), noted?.kept])
  return issued
}

/** The last step before minting: whoever comes second with the same token is refused, however close. */
function noteUse({ payload }: SubjectToken, { id: issuerId }: Issuer, { replayGuard }: ExchangeContext, now: number) {
  // An exp may have a fraction of any length; the database keeps whole milliseconds.
  const expiresAt = Math.ceil((payload.exp as number) * 1_000)
  return replayGuard.use({ issuerId, id: payload.jti, expiresAt }, now)
}

async function refused(refusal: Refusal, context: ExchangeContext, record: AuditRow): Promise<Response> {
  const { refused: reason } = refusal
  const detail = refusal.detail === undefined ? undefined : bounded(refusal.detail)
  const error = oauthErrorOf(reason)
  context.log('warn', 'exchange_refused', {
    request_id: record.requestId,
    error,
    reason,
    detail,
    policy: record.policyNamed ?? undefined,
    issuer_id: record.issuerId ?? undefined,
    subject: record.subject ?? undefined,
  })
  await context.writer.appendAudit({ ...record, outcome: 'refused', error, reason, detail: detail ?? null })
  return refusalReply(refusal, record.requestId)
}

function refusalFromError(error: unknown, { log }: ExchangeContext, { requestId }: RequestInfo): Refusal {
  if (error instanceof Fault && isReason(error.reason)) return refuse(error.reason)
  log('error', 'exchange_failed', { request_id: requestId, reason: describeError(error) })
  return refuse('unforeseen')
}

function emptyRecord({ requestId, clientAddress }: RequestInfo, now: number): AuditRow {
  return {
    at: now,
    requestId,
    outcome: 'refused',
    error: null,
    reason: null,
    detail: null,
    organizationId: null,
    policyId: null,
    issuerId: null,
    keyId: null,
    policyNamed: null,
    subject: null,
    subjectTokenId: null,
    subjectTokenSha256: null,
    accessTokenId: null,
    accessTokenExpiresAt: null,
    clientAddress,
  }
}

function recordBinding(record: AuditRow, { policy, organization, issuer, key }: PolicyBinding): void {
  record.organizationId = organization.id
  record.policyId = policy.id
  record.issuerId = issuer.id
  record.keyId = key.id
}

/** What the token claims, verified or not: a refused exchange is told apart by it. */
function recordClaims(record: AuditRow, { payload: { sub, jti } }: JwtText): void {
  record.subject = typeof sub === 'string' ? bounded(sub) : null
  record.subjectTokenId = typeof jti === 'string' ? bounded(jti) : null
}

/** A text from outside, cut to what the audit keeps; counted in code points, as the limits of claims are. */
function bounded(whole: string): string {
  const text = storableText(withoutSecrets(whole))
  if (text.length <= claimCharactersMax) return text
  const characters = [...text.slice(0, 2 * claimCharactersMax + 1)]
  return characters.length <= claimCharactersMax ? text : `${characters.slice(0, claimCharactersMax).join('')}…`
}
