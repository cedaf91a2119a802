// Admin operations that only read: who exchanged what and with which outcome, and what each key has used.

import { listChanges } from '../../db/admin-changes.ts'
import { type AuditFilter, findAudit, listAudit } from '../../db/audit.ts'
import type { AdminChange } from '../../db/schema.ts'
import { findDrift, listUsage, sumUsage, type UsageFilter, type UsageGrouping, usageGroupings } from '../../db/usage.ts'
import type { AdminContext } from '../context.ts'
import { Fault } from '../fault.ts'
import { isReason, type Step, stepOf } from '../federation/refusal.ts'
import { nanodollarsPerDollar, reportRowsDefault, reportRowsMax } from '../limits.ts'
import type { Registry } from '../registry.ts'
import { type } from '../shape.ts'
import type { changeAnswer, exchangeAnswer } from './answers.ts'
import { operation } from './operation.ts'
import { findKey, findOrganization, organizationInput, referenceShape, timeOf } from './references.ts'

/** ISO 8601 has forms that Date does not read, such as weeks. */
const timeShape = type('string.date.iso').pipe((text, context) => {
  const time = new Date(text)
  return Number.isNaN(time.getTime()) ? context.error('a time such as 2026-11-21T09:30:00Z') : time
})
const page = {
  'since?': timeShape,
  'limit?': `1 <= number.integer <= ${reportRowsMax}`,
  'before_id?': 'number.integer > 0',
} as const
const auditInput = type({ '+': 'reject', ...organizationInput, ...page, 'outcome?': "'issued' | 'refused'" })
const changesInput = type({ '+': 'reject', ...organizationInput, ...page })
const usageInput = type({ '+': 'reject', ...organizationInput, ...page, 'until?': timeShape, 'key?': referenceShape })
const sumInput = usageInput.merge({ '+': 'reject', 'by?': type.enumerated(...usageGroupings) })

export const reportOperations = {
  'audit.list': operation(auditInput, async (context, input) => {
    const filter: AuditFilter = { ...pageOf(context, input), outcome: input.outcome }
    return { data: (await listAudit(context.orm, filter)).map(showAudit) }
  }),
  'audit.changes': operation(changesInput, async (context, input) => {
    return { data: (await listChanges(context.orm, pageOf(context, input))).map(showChange) }
  }),
  'audit.show': operation(type({ '+': 'reject', request_id: 'string.uuid' }), async ({ orm }, { request_id }) => {
    const found = await findAudit(orm, request_id.toLowerCase())
    if (found === undefined) throw new Fault('not_found', `There is no exchange with the request id ${request_id}`)
    return showAudit(found)
  }),
  'usage.sum': operation(sumInput, async (context, { by = 'key', ...input }) => {
    const rows = await sumUsage(context.orm, by, usageFilter(context, input))
    return { data: rows.map((row) => ({ ...groupOf(by, row), ...totalsOf(row) })) }
  }),
  'usage.verify': operation(type({ '+': 'reject' }), async ({ orm }) => {
    const drift = await findDrift(orm)
    const data = drift.map(({ keyId, day }) => ({ key_id: keyId, day: dayText(day) }))
    return { ok: data.length === 0, data }
  }),
  'usage.requests': operation(usageInput, async (context, input) => {
    return { data: (await listUsage(context.orm, usageFilter(context, input))).map(showUsage) }
  }),
}

type Summed = Awaited<ReturnType<typeof sumUsage>>[number]

/** What a row of totals is about, under the names that the other answers have. */
function groupOf(by: UsageGrouping, row: Summed): Record<string, unknown> {
  switch (by) {
    case 'key':
      return { key_id: row.keyId, key_name: row.keyName, key_deleted: row.keyDeletedAt !== null }
    case 'policy':
      return { policy_id: row.policyId, policy_name: row.policyName }
    case 'subject':
      return { issuer_id: row.issuerId, issuer_url: row.issuerUrl, subject: row.subject }
    case 'model':
      return { model: row.model }
    case 'upstream':
      return { upstream: row.upstream }
    case 'day':
      return { day: dayText(Math.floor((row.firstUsedAt ?? 0) / dayMilliseconds)) }
  }
}

function totalsOf(row: Summed) {
  return {
    requests: row.requests,
    prompt_tokens: row.promptTokens,
    completion_tokens: row.completionTokens,
    total_tokens: row.totalTokens,
    cost: row.costNanodollars / nanodollarsPerDollar,
    requests_without_cost: row.unpriced,
    last_used_at: timeOf(row.lastUsedAt),
  }
}

const dayMilliseconds = 24 * 60 * 60 * 1_000
const dayText = (day: number) => new Date(day * dayMilliseconds).toISOString().slice(0, 10)

/** Without an organization a report covers all of them, and for the audit also exchanges that named no policy of ours. */
function pageOf(
  { registry }: AdminContext,
  input: { organization?: string; since?: Date; limit?: number; before_id?: number },
) {
  return {
    organizationId: input.organization === undefined ? undefined : findOrganization(registry, input.organization).id,
    since: input.since?.getTime(),
    beforeId: input.before_id,
    limit: input.limit ?? reportRowsDefault,
  }
}

function usageFilter(context: AdminContext, input: typeof usageInput.infer): UsageFilter {
  const { registry } = context
  const keyId =
    input.key === undefined
      ? undefined
      : findKeyEverUsed(registry, input.key, findOrganization(registry, input.organization).id)
  return { ...pageOf(context, input), keyId, until: input.until?.getTime() }
}

/** A key that is deleted has its usage still; by id, since its name may be another's by now. */
function findKeyEverUsed(registry: Registry, reference: string, organizationId: string): string {
  const known = registry.keys.get(reference) ?? registry.keysByHash.get(reference)
  return known?.organizationId === organizationId ? known.id : findKey(registry, reference, organizationId).id
}

function showAudit({
  row,
  policyName,
  issuerUrl,
}: Awaited<ReturnType<typeof listAudit>>[number]): typeof exchangeAnswer.infer {
  return {
    id: row.id,
    at: timeOf(row.at),
    request_id: row.requestId,
    outcome: row.outcome,
    error: row.error,
    reason: row.reason,
    step: stepOfRow(row.reason),
    detail: row.detail,
    organization_id: row.organizationId,
    policy_id: row.policyId,
    policy_name: policyName,
    policy_named: row.policyNamed,
    issuer_id: row.issuerId,
    issuer_url: issuerUrl,
    key_id: row.keyId,
    subject: row.subject,
    subject_token_id: row.subjectTokenId,
    subject_token_sha256: row.subjectTokenSha256,
    access_token_id: row.accessTokenId,
    access_token_expires_at: timeOf(row.accessTokenExpiresAt),
    client_address: row.clientAddress,
  }
}

/** The step that refused; a reason that this program does not know has none. */
function stepOfRow(reason: string | null): Step | null {
  return reason !== null && isReason(reason) ? stepOf(reason) : null
}

function showChange(row: AdminChange): typeof changeAnswer.infer {
  return {
    id: row.id,
    at: timeOf(row.at),
    actor: row.actor,
    actor_key_id: row.actorKeyId,
    request_id: row.requestId,
    operation: row.operation,
    organization_id: row.organizationId,
    kind: row.kind,
    target_id: row.targetId,
    before: row.before === null ? null : (JSON.parse(row.before) as unknown),
    after: row.after === null ? null : (JSON.parse(row.after) as unknown),
  }
}

function showUsage({ row, keyName, policyName, issuerUrl }: Awaited<ReturnType<typeof listUsage>>[number]) {
  return {
    id: row.id,
    at: timeOf(row.at),
    request_id: row.requestId,
    organization_id: row.organizationId,
    workspace_id: row.workspaceId,
    key_id: row.keyId,
    key_name: keyName,
    policy_id: row.policyId,
    policy_name: policyName,
    issuer_id: row.issuerId,
    issuer_url: issuerUrl,
    subject: row.subject,
    access_token_id: row.accessTokenId,
    endpoint: row.endpoint,
    model: row.model,
    model_asked: row.modelAsked,
    upstream: row.upstream,
    preset_version: row.presetVersion,
    status: row.status,
    streamed: row.streamed,
    completed: row.completed,
    client_left: row.clientLeft,
    prompt_tokens: row.promptTokens,
    completion_tokens: row.completionTokens,
    total_tokens: row.totalTokens,
    cached_tokens: row.cachedTokens,
    reasoning_tokens: row.reasoningTokens,
    cost: row.costNanodollars === null ? null : row.costNanodollars / nanodollarsPerDollar,
    usage_source: row.usageSource,
    first_byte_milliseconds: row.firstByteMilliseconds,
    duration_milliseconds: row.durationMilliseconds,
  }
}
