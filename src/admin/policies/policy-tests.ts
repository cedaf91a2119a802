// Runs the tests that are stored with policies: when a policy is saved, by command, and when the engine has changed.
import { createPace } from '../../../db/read/pace.ts'
import type { PolicyTest } from '../../../db/schema/policy-parts.ts'
import type { Policy as PolicyRow } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import { runPolicyTest, type TestedIssuer, type TestedPolicy, type TestResult } from '../../federation/policy-test.ts'
import { checkShape } from '../../values/shape.ts'
import type { Needs } from '../operation/context.ts'
import { findOrganization, findPolicy } from '../operation/references.ts'
import type { testedPolicyResponse } from '../operation/responses.ts'
import { newPolicyColumns } from './policy-edit.ts'
import { testedDrafts, type testInput } from './policy-input.ts'

export type TestedResponse = typeof testedPolicyResponse.infer

/** How much of a failed test an error shows. */
const failureCharactersMax = 1_000

/** @throws Fault `invalid` that shows the first test that fails */
export async function rejectFailingTests(context: Needs<'registry' | 'now'>, row: PolicyRow): Promise<void> {
  const results = await testRow(context, row)
  const failed = results.filter(({ ok }) => !ok)
  const [first] = failed
  if (first === undefined) return
  const others = failed.length === 1 ? '' : ` Other failures: ${failed.slice(1).map(quotedName).join(', ')}.`
  throw new Fault(
    'invalid',
    `The policy fails ${failed.length} of ${results.length} tests. ${describeFailure(first)}.${others} Correct the policy or the test`,
    { reason: 'test_failed' },
  )
}

function quotedName({ name }: TestResult): string {
  return JSON.stringify(name)
}

/** What was expected, what happened, and the values behind it. */
export function describeFailure({ name, expected, got, detail, condition = [] }: TestResult): string {
  const parts = condition.map(({ source, value, error }) =>
    error === undefined ? `${source} is ${value}` : `${source} fails: ${error}`,
  )
  // The detail of a refusal has the parts that decided.
  const why = detail ?? parts.join('; ')
  const text = `${JSON.stringify(name)}: expected ${expected}, got ${got}${why === '' ? '' : ` (${why})`}`
  return text.length <= failureCharactersMax ? text : `${text.slice(0, failureCharactersMax)}…`
}

function testRow({ registry, now }: Needs<'registry' | 'now'>, row: PolicyRow): Promise<TestResult[]> {
  const issuer = registry.issuers.get(row.issuerId)
  if (issuer === undefined) throw new Error(`A policy names the issuer ${row.issuerId}, which the registry lacks`)
  return runTests(row, issuer, row.tests ?? [], now())
}

/** The results of the tests, in their order; `now` in milliseconds. Other work comes in between. */
export async function runTests(
  policy: TestedPolicy,
  issuer: TestedIssuer,
  tests: readonly PolicyTest[],
  now: number,
): Promise<TestResult[]> {
  const pace = createPace()
  const results: TestResult[] = []
  for (const test of tests) {
    results.push(await runPolicyTest(policy, issuer, test, now))
    await pace()
  }
  return results
}

/** The tests of one policy, or of all policies of the organization that have any. */
export async function testPolicies(
  context: Needs<'registry' | 'now'>,
  { organization, policy }: typeof testInput.infer,
): Promise<{ data: TestedResponse[] }> {
  const { registry } = context
  const { id } = findOrganization(registry, organization)
  if (policy !== undefined) return { data: [await testedRow(context, findPolicy(registry, policy, id))] }
  const data: TestedResponse[] = []
  for await (const tested of testAll(context)) if (tested.organizationId === id) data.push(tested.response)
  return { data }
}

async function testedRow(context: Needs<'registry' | 'now'>, row: PolicyRow): Promise<TestedResponse> {
  const issuer_url = context.registry.issuers.get(row.issuerId)?.issuerUrl ?? ''
  return { policy_id: row.id, policy_name: row.name, issuer_url, tests: await testRow(context, row) }
}

/** Runs the tests of all policies of the installation. Other work comes in between. */
export async function* testAll(
  context: Needs<'registry' | 'now'>,
): AsyncGenerator<{ organizationId: string; response: TestedResponse }, undefined> {
  const pace = createPace()
  // Most policies of a large installation are packed; only those with tests are unpacked.
  for (const row of context.registry.policies.valuesContaining('\\"expect\\":')) {
    await pace()
    if (row.deletedAt === null && row.tests !== null && row.tests.length > 0)
      yield { organizationId: row.organizationId, response: await testedRow(context, row) }
  }
}

/**
 * Runs the tests of policies that are not saved. It needs no database, so each names its issuer by URL.
 * @throws Fault `invalid`
 */
export async function testDrafts(value: unknown, now: number): Promise<{ data: TestedResponse[] }> {
  const data: TestedResponse[] = []
  for (const draft of checkShape(testedDrafts, Array.isArray(value) ? value : [value])) {
    const { name = null, issuer_url, tests } = draft
    if (issuer_url === undefined)
      throw new Fault('invalid', 'A policy of a file must have issuer_url: its tests run without a server')
    const issuer = { issuerUrl: issuer_url, clockSkewSeconds: 0, maxTokenAgeSeconds: null }
    const results = await runTests(newPolicyColumns(draft), issuer, tests ?? [], now)
    data.push({ policy_id: null, policy_name: name, issuer_url, tests: results })
  }
  return { data }
}
