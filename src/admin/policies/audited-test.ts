// Makes a test of a policy from an exchange in the audit log: its recorded claims, and what was decided. It saves nothing.

import type { PolicyTest } from '../../../db/schema/policy-parts.ts'
import { findAudit, type ListedAudit } from '../../../db/tables/audit.ts'
import { Fault } from '../../fault.ts'
import type { Policy } from '../../federation/policy.ts'
import { runPolicyTest } from '../../federation/policy-test.ts'
import { createRecordJudge } from '../../federation/recording/record-judge.ts'
import { type RecordedClaims, readRecordedClaims } from '../../federation/recording/recorded-claims.ts'
import { isReason, stepOf } from '../../federation/subject-token/refusal.ts'
import { timeOfRequest } from '../../http/request-id.ts'
import { type } from '../../values/shape.ts'
import { nameShape, uuidShape } from '../../values/shapes.ts'
import type { Needs } from '../operation/context.ts'
import { findOrganization, organizationInput } from '../operation/references.ts'
import { hintAtArchive } from '../reports/archived.ts'
import type { auditedTestResponse } from './backtest-response.ts'

export const auditedTestInput = type({
  '+': 'reject',
  ...organizationInput,
  request_id: uuidShape,
  'name?': nameShape.configure({ says: 'Name of the test; default: exchange and the request id' }),
})

/** Differ in every token. A test has values that fit. */
const claimsOfOneToken = ['iat', 'exp', 'nbf', 'jti']

/** @throws Fault `not_found`, or `invalid` for an exchange that no test can repeat */
export async function makeAuditedTest(
  context: Needs<'reader' | 'registry' | 'now'>,
  { organization, request_id, name }: typeof auditedTestInput.infer,
): Promise<typeof auditedTestResponse.infer> {
  const { registry, now } = context
  const { id: organizationId } = findOrganization(registry, organization)
  const exchange = await findExchange(context, request_id.toLowerCase(), organizationId)
  const policy = registry.policies.get(exchange.policyId ?? '')
  const issuer = registry.issuers.get(policy?.issuerId ?? '')
  if (policy === undefined || issuer === undefined || policy.issuerId !== exchange.issuerId)
    throw new Fault('not_found', 'The policy of this exchange was deleted, or trusts another issuer now')
  const record = exchange.recordedClaims === null ? null : readRecordedClaims(exchange.recordedClaims)
  const expect = expectationOf(exchange)
  const claims = claimsOf(policy, exchange, record)
  const test: PolicyTest = { name: name ?? `exchange ${exchange.requestId}`, claims, expect }
  const result = await runPolicyTest(policy, issuer, test, now())
  return { policy_id: policy.id, policy_name: policy.name, test, result }
}

async function findExchange(context: Needs<'reader'>, requestId: string, organizationId: string): Promise<ListedAudit> {
  const at = timeOfRequest(requestId)
  const exchange = await findAudit(context.reader, { requestId, at })
  if (exchange !== undefined && exchange.organizationId === organizationId) return exchange
  const hint = await hintAtArchive(context, at)
  throw new Fault('not_found', `There is no exchange with the request id ${requestId}`, { hint })
}

function expectationOf({ reason }: ListedAudit): string {
  if (reason === null) return 'allow'
  const step = isReason(reason) ? stepOf(reason) : undefined
  const isDecidedByPolicy = ['subject', 'audience', 'scopes', 'token_type', 'condition'].includes(step ?? '')
  if (isDecidedByPolicy || reason === 'jti_missing') return reason
  throw new Fault('invalid', `The exchange was refused with ${reason}, which no test of a policy can repeat`)
}

function claimsOf(policy: Policy, { subject, subjectTokenId, reason }: ListedAudit, record: RecordedClaims | null) {
  const exchange = { subject: subject ?? '', tokenId: subjectTokenId, reason, record }
  const judgment = createRecordJudge(policy, () => undefined)(exchange)
  if (record === null || record.key !== undefined || 'unknown' in judgment) throw notRecorded(record, judgment)
  const kept = Object.entries(record.claims).filter(([name]) => !claimsOfOneToken.includes(name))
  return { sub: subject ?? '', ...Object.fromEntries(kept), ...(reason === 'jti_missing' ? { jti: null } : {}) }
}

function notRecorded(record: RecordedClaims | null, judgment: object): Fault {
  if (record === null) return new Fault('invalid', 'No claims of this exchange were recorded')
  if (record.key !== undefined)
    return new Fault('invalid', 'The audit log has only hashes of the claims of this exchange, which a test cannot use')
  const claim = 'claim' in judgment ? `the claim ${String(judgment.claim)}` : 'claims'
  return new Fault('invalid', `The policy reads ${claim}, which the audit log does not have of this exchange`)
}
