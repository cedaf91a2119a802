// Admin operations that read the audit log: exchanges with their outcome, and changes by administrators.

import { getTableColumns } from 'drizzle-orm'
import { mapInSlices } from '../../../db/read/pace.ts'
import { type AdminChange, changeKinds, grantNames, sessions } from '../../../db/schema/record-schema.ts'
import { apiKeys, configDocuments, issuers, policies, signingKeys } from '../../../db/schema/schema.ts'
import { type AuditFilter, findAudit, type ListedAudit, listAudit } from '../../../db/tables/audit.ts'
import { listChanges } from '../../../db/tables/listed-changes.ts'
import { findUsage } from '../../../db/tables/usage.ts'
import { Fault } from '../../fault.ts'
import { readRecordedClaims } from '../../federation/recording/recorded-claims.ts'
import { isReason, reasonNames, type StepName, stepOf } from '../../federation/subject-token/refusal.ts'
import { timeOfRequest } from '../../http/request-id.ts'
import { nanodollarsPerDollar } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { claimValueShape, referenceShape, uuidShape } from '../../values/shapes.ts'
import type { Needs } from '../operation/context.ts'
import { installationInput, isInstallationOrganization } from '../operation/installation.ts'
import { operation } from '../operation/operation.ts'
import { findKeyIdEver, findOrganization, organizationInput, timeOf } from '../operation/references.ts'
import type { auditedResponse, changeResponse, exchangeResponse } from '../operation/responses.ts'
import { archivedOf, hintAtArchive } from './archived.ts'
import { countExchanges, countsInput } from './exchange-series.ts'
import { page, pageOf, traits, traitsOf } from './report-page.ts'
import { createRowNames, type RowNames } from './row-names.ts'
import { showUsage } from './usage.ts'

type AuditResponse = typeof auditedResponse.infer

const reasonShape = type('string')
  .narrow((text, context) => isReason(text) || context.mustBe('a reason from the audit log, such as audience_mismatch'))
  .configure({ enum: reasonNames })
const auditInput = type({
  '+': 'reject',
  ...organizationInput,
  ...page,
  ...traits,
  'outcome?': "'issued' | 'refused'",
  'reason?': reasonShape,
  'grant?': type.enumerated(...grantNames).configure({ says: 'Only exchanges by this grant of the token endpoint' }),
})
const exchangeInput = type({ '+': 'reject', ...organizationInput, request_id: uuidShape })
const changesInput = type({
  '+': 'reject',
  ...organizationInput,
  ...installationInput,
  ...page,
  'kind?': type.enumerated(...changeKinds),
  'without_kind?': type.enumerated(...changeKinds).configure({ says: 'No changes of this kind of thing' }),
  'target_id?': referenceShape.configure({ says: 'Only changes of the thing with this id' }),
  'by?': claimValueShape.configure({
    says: 'Only changes by this person, named by the subject of the token, or by this key, by name, id or hash',
  }),
  'by_contains?': claimValueShape.configure({
    says: 'Only changes by people whose subject, or by keys whose name, contains this text',
  }),
  'group?': uuidShape.configure({ says: 'Only the records of one change, such as that of a configuration document' }),
})

export const auditOperations = {
  'audit.list': operation(auditInput, listExchanges),
  'audit.changes': operation(changesInput, listAdminChanges),
  'audit.counts': operation(countsInput, countExchanges),
  'audit.show': operation(exchangeInput, showRequest),
}

async function listExchanges(context: Needs<'reader' | 'registry' | 'onProgress'>, input: typeof auditInput.infer) {
  const { reader, registry, onProgress } = context
  const { outcome, reason, grant } = input
  const filter: AuditFilter = { ...pageOf(context, input), ...(await traitsOf(context, input)), outcome, reason, grant }
  const names = createRowNames(registry)
  const { rows, moreBeforeId } = await listAudit(reader, filter, (row) => row, { onProgress })
  const isWhole = rows.length < filter.limit && moreBeforeId === undefined
  const archived = await archivedOf(context, { ...filter, kind: 'exchanges', isWhole })
  const data = await mapInSlices(rows, (row) => showAudit(row, names))
  return { data, more_before_id: moreBeforeId, ...archived }
}

async function listAdminChanges(
  context: Needs<'reader' | 'registry' | 'actor' | 'onProgress'>,
  input: typeof changesInput.infer,
) {
  const { reader, onProgress, actor } = context
  // Only the operators of the machine see its users.
  const showsUsers = actor.kind !== 'key'
  const usersOf = ({ osUser, sudoUser }: AdminChange): { os_user?: string | null; sudo_user?: string | null } =>
    showsUsers ? { os_user: osUser, sudo_user: sudoUser } : {}
  const names = createRowNames(context.registry)
  const asked = pageOf(context, input)
  const isInstallation =
    asked.organizationId !== undefined && isInstallationOrganization(context.registry, asked.organizationId)
  const { kind, without_kind: withoutKind, target_id: targetId, by_contains: byContains } = input
  const withCommon = input.installation === true && isInstallation
  const by = input.by === undefined ? undefined : await authorOf(context, input.by, input.organization)
  const filter = {
    ...asked,
    withCommon,
    kind,
    withoutKind,
    targetId,
    by,
    byContains,
    groupId: input.group?.toLowerCase(),
  }
  const rows = await listChanges(reader, filter, (row) => row, onProgress)
  const show = async (row: AdminChange) => ({ ...(await showChange(row, names, showsUsers)), ...usersOf(row) })
  return { data: await mapInSlices(rows, show) }
}

/** A text can be the subject of a person and the name of a key: both are meant. */
async function authorOf({ registry }: Needs<'registry'>, by: string, organization: string | undefined) {
  const keyId = await findKeyIdEver(registry, by, organization).catch((error) => {
    if (error instanceof Fault && error.code === 'not_found') return undefined
    throw error
  })
  return { subject: by, keyId }
}

async function showRequest(
  context: Needs<'reader' | 'registry'>,
  { request_id, organization }: typeof exchangeInput.infer,
) {
  const { reader, registry } = context
  const requestId = request_id.toLowerCase()
  const organizationId = organization === undefined ? undefined : findOrganization(registry, organization).id
  const isTheirs = (row: { organizationId: string | null }) =>
    (organizationId ?? row.organizationId) === row.organizationId
  const names = createRowNames(registry)
  const at = timeOfRequest(requestId)
  const exchange = await findAudit(reader, { requestId, at })
  if (exchange !== undefined && isTheirs(exchange))
    return {
      kind: 'exchange',
      ...(await showAudit(exchange, names)),
      recorded_claims: exchange.recordedClaims === null ? null : readRecordedClaims(exchange.recordedClaims),
    } satisfies AuditResponse
  const request = exchange === undefined ? await findUsage(reader, { requestId, at }) : undefined
  if (request !== undefined && isTheirs(request))
    return { kind: 'inference', ...(await showUsage(request, names)) } satisfies AuditResponse
  const hint = await hintAtArchive(context, at)
  throw new Fault('not_found', `There is no exchange or inference request with the request id ${request_id}`, {
    hint: hint || '; requests that were refused before they were forwarded are only in the log',
  })
}

async function showAudit(row: ListedAudit, names: RowNames): Promise<typeof exchangeResponse.infer> {
  const issuer = await names.issuer(row.issuerId)
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
    policy_name: (await names.policy(row.policyId))?.name ?? null,
    policy_named: row.policyNamed,
    issuer_id: row.issuerId,
    issuer_name: issuer?.name ?? null,
    issuer_url: issuer?.issuerUrl ?? null,
    key_id: row.keyId,
    key_name: (await names.key(row.keyId))?.name ?? null,
    grant: row.grant,
    subject: row.subject,
    attribution: row.attribution,
    subject_token_id: row.subjectTokenId,
    subject_token_sha256: row.subjectTokenSha256,
    access_token_id: row.accessTokenId,
    access_token_expires_at: timeOf(row.accessTokenExpiresAt),
    client_address: row.clientAddress,
  }
}

/** The step that refused the token; null for a reason that this program does not know. */
function stepOfRow(reason: string | null): StepName | null {
  return reason !== null && isReason(reason) ? stepOf(reason) : null
}

async function showChange(
  row: AdminChange,
  names: RowNames,
  showsUsers: boolean,
): Promise<typeof changeResponse.infer> {
  return {
    id: row.id,
    at: timeOf(row.at),
    actor: row.actor,
    actor_key_id: row.actorKeyId,
    actor_issuer: row.actorIssuer,
    actor_subject: row.actorSubject,
    actor_key_name: (await names.key(row.actorKeyId))?.name ?? null,
    session_id: row.sessionId,
    request_id: row.requestId,
    operation: row.operation,
    group_id: row.groupId,
    organization_id: row.organizationId,
    kind: row.kind,
    target_id: row.targetId,
    before: showChangedRow(row.before, showsUsers),
    after: showChangedRow(row.after, showsUsers),
  }
}

const flags = new Set([
  'has_credential',
  ...[apiKeys, configDocuments, issuers, policies, sessions, signingKeys]
    .flatMap((table): { name: string; dataType: string }[] => Object.values(getTableColumns(table)))
    .filter(({ dataType }) => dataType === 'boolean')
    .map(({ name }) => name),
])

/** A row as SQLite wrote it, with flags and times in the usual form, and without the hash of a key. */
function showChangedRow(text: string | null, showsUsers: boolean): object | null {
  if (text === null) return null
  const { hash: _hash, opened_by: user, ...row } = JSON.parse(text) as Record<string, unknown>
  const shown = user === undefined || !showsUsers ? row : { ...row, opened_by: user }
  return Object.fromEntries(Object.entries(shown).map(([name, value]) => showColumn(name, value)))
}

function showColumn(name: string, value: unknown): [name: string, value: unknown] {
  if (name.endsWith('_nanodollars')) {
    const dollars = typeof value === 'number' ? value / nanodollarsPerDollar : value
    return [name.replace('_nanodollars', '_dollars'), dollars]
  }
  if (typeof value !== 'number') return [name, value]
  if (flags.has(name)) return [name, value === 1]
  return [name, name.endsWith('_at') ? timeOf(value) : value]
}
