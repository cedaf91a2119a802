// Admin operations that read usage: totals by key or another field, single requests, and a check that the two agree.

import { mapInSlices } from '../../../db/read/pace.ts'
import { addedTo, findDrift, sumUsage, type UsageSum } from '../../../db/read/usage-totals.ts'
import type { UsageGrouping } from '../../../db/schema/usage-groupings.ts'
import { type ListedUsage, listUsage, requestResults, type UsageFilter } from '../../../db/tables/usage.ts'
import { modelCharactersMax, nameCharactersMax, nanodollarsPerDollar, reportRowsMax } from '../../limits.ts'
import { attributionCharactersMax } from '../../values/attribution-text.ts'
import { type } from '../../values/shape.ts'
import { textShape } from '../../values/shapes.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { organizationInput, timeOf } from '../operation/references.ts'
import type { requestResponse } from '../operation/responses.ts'
import { archivedOf } from './archived.ts'
import { type Grouping, groupingShape, labelIn } from './grouping.ts'
import { page, pageOf, traits, traitsOf } from './report-page.ts'
import { createRowNames, type RowNames } from './row-names.ts'
import { showTotals } from './usage-figures.ts'

const usageInput = type({ '+': 'reject', ...organizationInput, ...page, ...traits })
const sumInput = usageInput.merge({ '+': 'reject', 'by?': groupingShape })
const requestsInput = usageInput.merge({
  '+': 'reject',
  'model?': textShape(1, modelCharactersMax).configure({
    says: 'Only requests for this model, or that it responded to',
  }),
  'attribution?': textShape(1, attributionCharactersMax).configure({
    says: 'Only requests that are attributed to this value',
  }),
  'upstream?': textShape(1, nameCharactersMax).configure({ says: 'Only requests that this inference server got' }),
  'status?': type('100 <= number.integer <= 599').configure({ says: 'Only responses with this status' }),
  'result?': type.enumerated(...requestResults).configure({
    says: 'Only requests that succeeded, that failed, or whose client left before the end',
  }),
})

export const usageOperations = {
  'usage.sum': operation(sumInput, sum),
  'usage.verify': operation(type({ '+': 'reject' }), verify),
  'usage.requests': operation(requestsInput, listRequests),
}

async function sum(
  context: Needs<'reader' | 'registry' | 'onProgress'>,
  { by = 'key', ...input }: typeof sumInput.infer,
) {
  // Totals must be complete, so there are fewer groups only on request.
  const filter = await usageFilter(context, { limit: reportRowsMax, ...input })
  const names = createRowNames(context.registry)
  const label = labelIn(by)
  const sums =
    label === undefined
      ? await sumUsage(context.reader, by as UsageGrouping, filter, context.onProgress)
      : await sumByLabel(context, label, filter, names)
  const show = async (sum: UsageSum) => ({ ...(await groupOf(by as Grouping, sum.group, names)), ...totalsOf(sum) })
  const archived = await archivedOf(context, { ...filter, kind: 'usage', isWhole: true })
  return { data: await mapInSlices(sums, show), ...archived }
}

/** The keys of each value of a label. Keys without the label are one group. */
async function sumByLabel(
  { reader, onProgress }: Needs<'reader' | 'onProgress'>,
  label: string,
  filter: UsageFilter,
  names: RowNames,
) {
  const ofKeys = await sumUsage(reader, 'key', { ...filter, limit: Number.MAX_SAFE_INTEGER }, onProgress)
  const sums = new Map<string | null, UsageSum>()
  for (const sum of ofKeys) {
    const value = (await names.key(String(sum.group.keyId)))?.labels?.[label] ?? null
    const known = sums.get(value)
    sums.set(value, known === undefined ? { ...sum, group: { label: value } } : addedTo(known, sum))
  }
  return [...sums.values()].toSorted((one, other) => other.totalTokens - one.totalTokens).slice(0, filter.limit)
}

/** `archived` lists the archives whose days were not compared. */
async function verify(context: Needs<'reader' | 'onProgress'>) {
  const { reader, onProgress } = context
  const drift = await findDrift(reader, onProgress)
  const data = drift.map(({ keyId, day }) => ({ key_id: keyId, day: dayText(day) }))
  return { ok: data.length === 0, data, ...(await archivedOf(context, { kind: 'usage', isWhole: true })) }
}

async function listRequests(context: Needs<'reader' | 'registry' | 'onProgress'>, input: typeof requestsInput.infer) {
  const { reader, registry, onProgress } = context
  const { model, upstream, status, result, attribution } = input
  const filter = { ...(await usageFilter(context, input)), model, upstream, status, result, attribution }
  const names = createRowNames(registry)
  const { rows, moreBeforeId } = await listUsage(reader, filter, (row) => row, { onProgress })
  const data = await mapInSlices(rows, (row) => showUsage(row, names))
  const isWhole = data.length < filter.limit && moreBeforeId === undefined
  const archived = await archivedOf(context, { ...filter, kind: 'usage', isWhole })
  return { data, more_before_id: moreBeforeId ?? (isWhole ? null : (data.at(-1)?.id ?? null)), ...archived }
}

async function usageFilter(context: Needs<'registry'>, input: typeof usageInput.infer): Promise<UsageFilter> {
  return { ...pageOf(context, input), ...(await traitsOf(context, input)) }
}

const dayMilliseconds = 24 * 60 * 60 * 1_000
export const dayText = (day: number) => new Date(day * dayMilliseconds).toISOString().slice(0, 10)

type GroupName =
  | 'key_id'
  | 'key_name'
  | 'policy_id'
  | 'policy_name'
  | 'issuer_id'
  | 'issuer_url'
  | 'subject'
  | 'model'
  | 'workspace_id'
  | 'preset_version'
  | 'upstream'
  | 'attribution'
  | 'label'
  | 'user'
  | 'session_id'
  | 'day'
type Group = { [Name in GroupName]?: string | number | null } & { key_deleted?: boolean }

/** The group of a row of totals, with the field names of the other responses and the current names of rows. */
export async function groupOf(by: Grouping, group: UsageSum['group'], names: RowNames): Promise<Group> {
  const [keyId = null, policyId = null, issuerId = null] = [group.keyId, group.policyId, group.issuerId].map((id) =>
    typeof id === 'string' ? id : null,
  )
  switch (by) {
    case 'key': {
      const key = await names.key(keyId)
      return { key_id: group.keyId, key_name: key?.name ?? null, key_deleted: key?.deletedAt !== null }
    }
    case 'policy':
      return { policy_id: group.policyId, policy_name: (await names.policy(policyId))?.name ?? null }
    case 'subject': {
      const issuerUrl = (await names.issuer(issuerId))?.issuerUrl ?? null
      return { issuer_id: group.issuerId, issuer_url: issuerUrl, subject: group.subject }
    }
    case 'attribution':
      return { attribution: group.attribution }
    case 'model':
      return { model: group.model }
    case 'preset':
      return { workspace_id: group.workspaceId, preset_version: group.presetVersion }
    case 'upstream':
      return { upstream: group.upstream }
    case 'user':
      return { user: group.endUser }
    case 'session':
      return { session_id: group.sessionId }
    case 'day':
      return { day: dayText(Number(group.day)) }
    default:
      return { label: group.label }
  }
}

function totalsOf(row: UsageSum) {
  return {
    ...showTotals(row),
    last_used_at: timeOf(row.lastUsedAt),
  }
}

export async function showUsage(row: ListedUsage, names: RowNames): Promise<typeof requestResponse.infer> {
  const issuer = await names.issuer(row.issuerId)
  return {
    id: row.id,
    at: timeOf(row.at),
    request_id: row.requestId,
    organization_id: row.organizationId,
    workspace_id: row.workspaceId,
    key_id: row.keyId,
    key_name: (await names.key(row.keyId))?.name ?? null,
    policy_id: row.policyId,
    policy_name: (await names.policy(row.policyId))?.name ?? null,
    issuer_id: row.issuerId,
    issuer_name: issuer?.name ?? null,
    issuer_url: issuer?.issuerUrl ?? null,
    subject: row.subject,
    attribution: row.attribution,
    user: row.endUser,
    session_id: row.sessionId,
    metadata: metadataOf(row.metadata),
    access_token_id: row.accessTokenId,
    endpoint: row.endpoint,
    model: row.model,
    model_asked: row.modelAsked,
    upstream: row.upstream,
    attempts: row.attempts,
    preset_version: row.presetVersion,
    status: row.status,
    streamed: row.streamed,
    completed: row.completed,
    client_left: row.clientLeft,
    error: row.error,
    prompt_tokens: row.promptTokens,
    completion_tokens: row.completionTokens,
    total_tokens: row.totalTokens,
    cached_tokens: row.cachedTokens,
    reasoning_tokens: row.reasoningTokens,
    unit: row.unit,
    units: row.units,
    cost: row.costNanodollars === null ? null : row.costNanodollars / nanodollarsPerDollar,
    price: row.price,
    usage_source: row.usageSource,
    estimated: row.estimated,
    first_byte_milliseconds: row.firstByteMilliseconds,
    duration_milliseconds: row.durationMilliseconds,
  }
}

/** Earlier programs did not record it. */
function metadataOf(text: string | null): object | null {
  return text === null ? null : (JSON.parse(text) as object)
}
