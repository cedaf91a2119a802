// Admin operations on federation policies (reference: Policy). The exchange follows what is saved here.

import type { Policy as PolicyRow } from '../../../db/schema/schema.ts'
import { insertPolicy, updatePolicy } from '../../../db/tables/policies.ts'
import type { Policy } from '../../federation/policy.ts'
import { checkUnchanged } from '../../http/entity-tag.ts'
import { subjectTokenBytesMax } from '../../limits.ts'
import type { Registry } from '../../registry/registry.ts'
import { type } from '../../values/shape.ts'
import { referenceShape, withoutNul } from '../../values/shapes.ts'
import { isSameTo } from '../kinds/fields.ts'
import { policyFields } from '../kinds/policy.ts'
import { rejectTargetWithHeader } from '../operation/attribution-header.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import {
  checkChanges,
  checkNameIsFree,
  findIssuer,
  findKey,
  findOrganization,
  findPolicy,
  organizationInput,
} from '../operation/references.ts'
import type { changedPolicyResponse } from '../operation/responses.ts'
import { auditedTestInput, makeAuditedTest } from './audited-test.ts'
import { backtestInput, backtestPolicy } from './backtest.ts'
import type { WalkContext } from './explain.ts'
import { explainNearest } from './nearest-policies.ts'
import { checkPolicyFields, newPolicyColumns, policyColumns } from './policy-edit.ts'
import { lintInput, policyChange, policyCreation, testInput } from './policy-input.ts'
import { lintPolicies, rejectBlockingFindings } from './policy-lint.ts'
import { listPolicies, policyListInput } from './policy-list.ts'
import { show, showDraft, showEdit, showSaved, showUsed } from './policy-response.ts'
import { rejectFailingTests, testPolicies } from './policy-tests.ts'
import { checkSignInPolicy } from './sign-in-policy.ts'

const checkInput = type({
  '+': 'reject',
  ...organizationInput,
  'policy?': referenceShape,
  token: type(`0 < string <= ${subjectTokenBytesMax}`).configure({
    pattern: withoutNul.source,
    says: 'A JWT, valid or not',
  }),
})
const oneInput = type({ '+': 'reject', ...organizationInput, policy: referenceShape })

export const policyOperations = {
  'policies.create': operation(policyCreation, createPolicy, { mutates: true }),
  'policies.list': operation(policyListInput, listPolicies),
  'policies.show': operation(oneInput, async (context: Needs<'registry' | 'lastUses' | 'now'>, input) =>
    showUsed(context, pick(context, input)),
  ),
  'policies.update': operation(policyChange, changePolicy, { mutates: true }),
  // It may wait for the issuer's server.
  'policies.check': operation(checkInput, check),
  'policies.lint': operation(lintInput, lintPolicies),
  'policies.test': operation(testInput, testPolicies),
  'policies.audited_test': operation(auditedTestInput, makeAuditedTest),
  'policies.backtest': operation(backtestInput, backtestPolicy),
  'policies.pause': operation(oneInput, setEnabled(false), { mutates: true }),
  'policies.resume': operation(oneInput, setEnabled(true), { mutates: true }),
  'policies.delete': operation(oneInput, deletePolicy, { mutates: true }),
}

async function changePolicy(
  context: ChangeContext,
  input: typeof policyChange.infer,
): Promise<typeof changedPolicyResponse.infer> {
  checkChanges(input, ['organization', 'policy', 'dry_run', 'if_match'])
  const policy = pick(context, input)
  checkUnchanged(policy, input.if_match)
  const { organizationId } = policy
  const row: PolicyRow = {
    ...policy,
    ...policyColumns(input),
    ...(input.issuer === undefined ? {} : { issuerId: findIssuer(context.registry, input.issuer, organizationId).id }),
    ...(input.key === undefined ? {} : { keyId: findTargetKey(context, input.key, organizationId) }),
  }
  checkPolicy(context, row)
  if (!isSameTo('tests', policyFields, policy, row)) await rejectFailingTests(context, row)
  if (input.dry_run === true) return showEdit(context, policy, row)
  if (!isSameTo('linter', policyFields, policy, row)) await rejectBlockingFindings(context, row)
  return showSaved(context, await change(context, policy, row))
}

async function deletePolicy(context: ChangeContext, input: typeof oneInput.infer) {
  const policy = pick(context, input)
  const now = context.now()
  const statement = updatePolicy(context.orm, policy.id, { deletedAt: now, updatedAt: now })
  await commit(context, [statement], [{ kind: 'policy', id: policy.id }])
  return { id: policy.id, deleted: true }
}

/** One policy, or the nearest of the organization. */
async function check(context: WalkContext, { organization, policy, token }: typeof checkInput.infer) {
  const { registry } = context
  const { id } = findOrganization(registry, organization)
  if (policy !== undefined) return { data: await explainNearest(context, [findPolicy(registry, policy, id)], token) }
  return { data: await explainNearest(context, policiesOf(registry, id), token) }
}

function* policiesOf({ policies }: Registry, organizationId: string): Generator<Policy> {
  for (const policy of policies.values())
    if (policy.organizationId === organizationId && policy.deletedAt === null) yield policy
}

async function createPolicy(context: ChangeContext, input: typeof policyCreation.infer) {
  const { id: organizationId } = findOrganization(context.registry, input.organization)
  const issuerId = findIssuer(context.registry, input.issuer, organizationId).id
  const keyId = findTargetKey(context, input.key, organizationId)
  const row = draftPolicy(input, { organizationId, issuerId, keyId }, context.now())
  checkPolicy(context, row)
  await rejectBlockingFindings(context, row)
  await rejectFailingTests(context, row)
  if (input.dry_run === true) return showDraft(context, row)
  await commit(context, [insertPolicy(context.orm, row)], [{ kind: 'policy', id: row.id }])
  return showSaved(context, row)
}

/** The row of a new policy; `now` in milliseconds. */
export function draftPolicy(
  input: Parameters<typeof newPolicyColumns>[0],
  names: Pick<PolicyRow, 'organizationId' | 'issuerId' | 'keyId'>,
  now: number,
): PolicyRow {
  return { id: crypto.randomUUID(), ...names, ...newPolicyColumns(input), createdAt: now, updatedAt: now }
}

function pick({ registry }: Needs<'registry'>, { organization, policy }: typeof oneInput.infer): Policy {
  return findPolicy(registry, policy, findOrganization(registry, organization).id)
}

async function change(context: ChangeContext, policy: Policy, fields: Partial<PolicyRow>): Promise<PolicyRow> {
  const row = { ...policy, ...fields, updatedAt: context.now() }
  await commit(context, [updatePolicy(context.orm, policy.id, row)], [{ kind: 'policy', id: policy.id }])
  return row
}

/** Pausing and resuming change nothing that the linter reads. */
function setEnabled(enabled: boolean) {
  return async (context: ChangeContext, input: typeof oneInput.infer) =>
    show(context, await change(context, pick(context, input), { enabled }))
}

/** The target is a key of the same organization (reference: Policy). With a management key, people sign in to the admin page. */
function findTargetKey({ registry }: Needs<'registry'>, reference: string, organizationId: string): string {
  const key = findKey(registry, reference, organizationId)
  if (key.kind === 'inference') rejectTargetWithHeader(key)
  return key.id
}

function checkPolicy({ registry }: Needs<'registry'>, row: PolicyRow): void {
  checkPolicyFields(row)
  checkSignInPolicy(row, registry.keys.get(row.keyId), registry.issuers.get(row.issuerId))
  checkNameIsFree('policy', registry.policies, row.name, row.organizationId, row.id)
}
