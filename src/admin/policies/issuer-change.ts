// What a change of an issuer does to its policies: tests that would fail, and strangers who could pass. Policies do not
// change with their issuer, but their tests and the linter read its URL, the linter who gets its tokens, and tests its
// limits on times.

import { createPace } from '../../../db/read/pace.ts'
import type { Issuer as IssuerRow } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import type { Policy } from '../../federation/policy.ts'
import { policiesNaming } from '../../registry/trust-rows.ts'
import { isSameTo } from '../kinds/fields.ts'
import { issuerFields } from '../kinds/issuer.ts'
import type { Needs } from '../operation/context.ts'
import { isBlocking, lintAgainst } from './policy-lint.ts'
import { describeFailure, runTests } from './policy-tests.ts'

/** Linting more policies would hold up other changes for seconds. */
const policiesLintedMax = 2_000

type Change = { before: Readonly<IssuerRow>; after: IssuerRow }

/**
 * Judges the saved policies of the issuer, except those that `isSkipped` names.
 * @throws Fault `invalid` for a test that passed before, or a blocking finding that is new and not accepted
 */
export async function rejectHarmfulChange(
  { registry, now }: Needs<'registry' | 'now'>,
  change: Change,
  isSkipped: (policy: Policy) => boolean = () => false,
): Promise<void> {
  const { before, after } = change
  if (isSameToPolicies(before, after)) return
  const isLintedSame = isSameTo('linter', issuerFields, before, after)
  const pace = createPace()
  let linted = 0
  for (const policy of policiesNaming(registry, 'issuerId', new Set([before.id]))) {
    if (policy.deletedAt !== null || isSkipped(policy)) continue
    await rejectBrokenTest(policy, change, now())
    if (!isLintedSame && linted++ < policiesLintedMax) await rejectNewFinding(policy, change)
    await pace()
  }
}

/** Whether nothing differs that the tests of its policies or the linter read. */
export function isSameToPolicies(before: IssuerRow, after: IssuerRow): boolean {
  return isSameTo('linter', issuerFields, before, after) && isSameTo('tests', issuerFields, before, after)
}

async function rejectBrokenTest(policy: Policy, { before, after }: Change, now: number): Promise<void> {
  const tests = policy.tests ?? []
  const [was, is] = [await runTests(policy, before, tests, now), await runTests(policy, after, tests, now)]
  const broken = is.find(({ ok }, index) => !ok && was[index]?.ok === true)
  if (broken === undefined) return
  throw new Fault(
    'invalid',
    `With this change, the policy ${JSON.stringify(policy.name)} fails a test. ${describeFailure(broken)}. Correct the policy or the test first`,
    { reason: 'test_failed' },
  )
}

async function rejectNewFinding(policy: Policy, { before, after }: Change): Promise<void> {
  const blocking = (await lintAgainst(policy, after)).filter(isBlocking)
  if (blocking.length === 0) return
  const known = new Set((await lintAgainst(policy, before)).filter(isBlocking).map(({ rule }) => rule))
  const found = blocking.find(({ rule }) => !known.has(rule))
  if (found === undefined) return
  throw new Fault(
    'invalid',
    `With this change, the policy ${JSON.stringify(policy.name)} is too wide: ${found.rule}. ${found.message} ${wayOut(found.rule)}`,
  )
}

function wayOut(rule: string): string {
  return rule === 'shared-unknown'
    ? 'Answer it with this change: set shared to false or true'
    : 'Narrow the policy first, or accept the finding there with a reason'
}
