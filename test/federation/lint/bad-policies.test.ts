// Every planted defect is found, by its rule, with an example that the policy really accepts.
import { describe, expect, test } from 'bun:test'
import { ruleNames } from '../../../src/federation/lint/rules.ts'
import { isAccepted } from '../../../src/federation/lint/witness.ts'
import { badPolicies } from './bad-policies.ts'
import { findingsOf, policyOf } from './linting.ts'

/** What is about the policy itself, rather than about who passes. */
const withoutExample = [
  ...['dead', 'unknown-claim', 'always-error', 'default-audience', 'long-token', 'look-alike'],
  'attribution-chosen',
  ...['not-decided', 'not-proven-narrow', 'shared-unknown'],
]

describe.each(ruleNames)('%s', (rule) => {
  const rows = badPolicies[rule]

  test('has at least two planted policies', () => {
    expect(rows.length).toBeGreaterThanOrEqual(2)
  })

  test.each(rows.map((row) => [row.subject ?? row.condition ?? '', row] as const))('is found in %s', (_, row) => {
    const found = findingsOf(row).find((finding) => finding.rule === rule)
    expect(findingsOf(row).map((finding) => finding.rule)).toContain(rule)
    if (withoutExample.includes(rule)) return
    expect(found?.witness).toBeDefined()
    expect(isAccepted(policyOf(row), found?.witness ?? {})).toBe(true)
  })
})
