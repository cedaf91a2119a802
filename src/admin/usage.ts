// Admin operations that read what was used: sums by key or something else, the single requests, and the proof that both agree.
import { findDrift, listUsage, sumUsage, type UsageFilter } from '../../db/usage.ts'
import { type UsageGrouping, usageGroupings } from '../../db/usage-groupings.ts'
import type { AdminContext } from '../context.ts'
import { nanodollarsPerDollar, reportRowsMax } from '../limits.ts'
import type { Registry } from '../registry.ts'
import { type } from '../shape.ts'
import { referenceShape, timeShape } from '../values.ts'
import { operation } from './operation.ts'
import { findKey, findOrganization, organizationInput, timeOf } from './references.ts'
import { page, pageOf } from './report-page.ts'

const usageInput = type({ '+': 'reject', ...organizationInput, ...page, 'until?': timeShape, 'key?': referenceShape })
const sumInput = usageInput.merge({ '+': 'reject', 'by?': type.enumerated(...usageGroupings) })

export const usageOperations = {
  'usage.sum': operation(sumInput, async (context, { by = 'key', ...input }) => {
    // A sum that ends somewhere in the middle is none, so that only who asks for fewer groups gets fewer.
    const rows = await sumUsage(context.orm, by, usageFilter(context, { limit: reportRowsMax, ...input }))
    return { data: rows.map((row) => ({ ...groupOf(by, row), ...totalsOf(row) })) }
  }),
  'usage.verify': operation(type({ '+': 'reject' }), async ({ orm }) => {
    const drift = await findDrift(orm)
    const data = drift.map(({ keyId, day }) => ({ key_id: keyId, day: dayText(day) }))
    return { ok: data.length === 0, data }
  }),
  'usage.requests': operation(usageInput, async (context, input) => {
    const filter = usageFilter(context, input)
    const rows = await listUsage(context.orm, filter)
    return {
      data: rows.map(showUsage),
      more_before_id: rows.length < filter.limit ? null : (rows.at(-1)?.row.id ?? null),
    }
  }),
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

const dayMilliseconds = 24 * 60 * 60 * 1_000
const dayText = (day: number) => new Date(day * dayMilliseconds).toISOString().slice(0, 10)

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
    case 'preset':
      return { workspace_id: row.workspaceId, preset_version: row.presetVersion }
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
