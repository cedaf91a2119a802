// What a reviewer of a plan must know beyond its fields: what the linter finds, which tests fail, which tokens pass or no longer pass, and
// which policies stop working.
import { createPace } from '../../../db/read/pace.ts'
import type { Policy } from '../../../db/schema/schema.ts'
import type { Difference } from '../../federation/lint/difference.ts'
import { isSameTo } from '../kinds/fields.ts'
import { policyFields } from '../kinds/policy.ts'
import type { Needs } from '../operation/context.ts'
import { isSameToPolicies, rejectHarmfulChange } from '../policies/issuer-change.ts'
import { readAffected } from '../policies/policy-impact.ts'
import { compareSides, issuerOfRow, lintAgainst } from '../policies/policy-lint.ts'
import { describeFailure, runTests } from '../policies/policy-tests.ts'
import type { Draft, DraftState } from './drafts.ts'
import type { Change } from './plan.ts'

export type FailedTests = { policy: string; failures: string[] }
export type PolicyFindings = { policy: string; findings: Awaited<ReturnType<typeof lintAgainst>> }
export type PolicyDifference = { policy: string } & Difference
export type Review = {
  /** What the linter finds in policies that are new, or that change in what it reads. */
  findings: PolicyFindings[]
  /** Tests that fail, of policies that change in what they read. */
  failedTests: FailedTests[]
  /** Of each saved policy that changes. */
  differences: PolicyDifference[]
}

/** Lints the policies that change, runs their tests, and searches for tokens that pass only before or after. */
export async function reviewPolicies(
  { context, issuers, now }: DraftState,
  changes: readonly Change[],
  draftOf: (change: Change) => Draft | undefined,
): Promise<Review> {
  const review: Review = { findings: [], failedTests: [], differences: [] }
  const issuersById = new Map([...issuers.values()].map((row) => [row.id, row]))
  const pace = createPace()
  for (const change of changes) {
    const policy = change.action === 'delete' ? undefined : draftOf(change)?.policy
    if (policy === undefined) continue
    const before = change.id === undefined ? undefined : context.registry.policies.get(change.id)
    const issuer = issuersById.get(policy.issuerId) ?? issuerOfRow(context, policy)
    const isIssuerSame = before !== undefined && isSameToPolicies(issuerOfRow(context, before), issuer)
    const findings =
      isIssuerSame && isSameTo('linter', policyFields, before, policy) ? [] : await lintAgainst(policy, issuer)
    if (findings.length > 0) review.findings.push({ policy: policy.name, findings })
    const tests = isIssuerSame && isSameTo('tests', policyFields, before, policy) ? [] : (policy.tests ?? [])
    const failures = (await runTests(policy, issuer, tests, now)).filter(({ ok }) => !ok).map(describeFailure)
    if (failures.length > 0) review.failedTests.push({ policy: policy.name, failures })
    if (before !== undefined && change.fields.length > 0)
      review.differences.push({ policy: policy.name, ...(await differenceOf(context, before, [policy, issuer])) })
    await pace()
  }
  return review
}

/**
 * A policy that the plan does not change, or would delete but keeps, may mean something else under a changed issuer.
 * @throws Fault `invalid` as an update of the issuer does
 */
export async function rejectHarmfulIssuers(
  { context, issuers }: DraftState,
  changes: readonly Change[],
  isPruned: boolean,
): Promise<void> {
  const isJudged = ({ kind, action }: Change) => kind === 'policies' && (isPruned || action !== 'delete')
  const reviewed = new Set(changes.filter(isJudged).map(({ name }) => name))
  const pace = createPace()
  for (const { kind, action, id, name } of changes) {
    const before = context.registry.issuers.get(id ?? '')
    const after = issuers.get(name)
    if (kind !== 'issuers' || action === 'delete' || before === undefined || after === undefined) continue
    await rejectHarmfulChange(context, { before, after }, (policy) => reviewed.has(policy.name))
    await pace()
  }
}

type ComparisonInput = Parameters<typeof compareSides>[1]

async function differenceOf(context: Needs<'registry'>, before: Policy, after: ComparisonInput): Promise<Difference> {
  const [policy, issuer] = after
  const isUrlSame = issuerOfRow(context, before).issuerUrl === issuer.issuerUrl
  const isSame =
    isUrlSame && before.enabled === policy.enabled && isSameTo('linter', policyFields, before, { ...before, ...policy })
  return isSame ? {} : compareSides([before, issuerOfRow(context, before)], after)
}

/**
 * The same changes, each removal of an issuer or a key with the names of the policies that it makes inactive. Policies that the plan
 * deletes, or that name another issuer or key afterward, are not among them.
 */
export function addAffected(
  context: Needs<'registry' | 'now'>,
  changes: readonly Change[],
  drafted: ReadonlyMap<string, Policy>,
): Change[] {
  const kept = new Set(
    changes.flatMap(({ kind, action, name }) => (kind === 'policies' && action === 'delete' ? [name] : [])),
  )
  const find = (field: 'issuerId' | 'keyId', ids: string[]) =>
    [...readAffected(context, field, ids)].map(
      ([id, { policies_affected = [] }]) =>
        [id, policies_affected.filter((name) => !kept.has(name) && (drafted.get(name)?.[field] ?? id) === id)] as const,
    )
  const stopped = new Map([
    ...find('issuerId', stoppedBy(changes, 'issuers')),
    ...find('keyId', stoppedBy(changes, 'keys')),
  ])
  return changes.map((change) => {
    const policiesAffected = stopped.get(change.id ?? '') ?? []
    return policiesAffected.length === 0 ? change : { ...change, policiesAffected }
  })
}

/** The saved objects of a kind that the changes delete or disable. */
function stoppedBy(changes: readonly Change[], kind: 'issuers' | 'keys'): string[] {
  const isStopped = ({ action, fields }: Change) =>
    action === 'delete' || fields.some(({ field, after }) => field === 'disabled' && after === true)
  return changes.flatMap((change) => (change.kind === kind && isStopped(change) ? (change.id ?? []) : []))
}
