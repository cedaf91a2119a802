// What must hold for any policy: examples pass the real checks, more conditions never open more, and spelling does not
// matter.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { compileCondition, isConditionFault } from '../../../src/federation/condition/compile.ts'
import { keyOf } from '../../../src/federation/lint/atom.ts'
import { pathsOfPolicy } from '../../../src/federation/lint/candidate.ts'
import type { Finding } from '../../../src/federation/lint/lint.ts'
import { excess } from '../../../src/federation/lint/paths.ts'
import type { RuleName } from '../../../src/federation/lint/rules.ts'
import { strangerRules } from '../../../src/federation/lint/stranger-rules.ts'
import { isAccepted } from '../../../src/federation/lint/witness.ts'
import { findingsOf, issuerUrls, type PolicyRow, policyOf } from './linting.ts'
import { policies, respell, rowOf, strangerPolicies, strangers } from './random-policies.ts'

/** Rules that answer the same question about who passes. A policy has one answer to each. */
const questions: Partial<Record<RuleName, string>> = {
  'github-pull-request': 'ref',
  'github-any-ref': 'ref',
  'github-reusable': 'ref',
  'tenant-wide': 'within',
  'prefix-within': 'within',
  'prefix-names': 'within',
  'gitlab-subgroups': 'within',
  'k8s-namespace': 'within',
  'k8s-default-account': 'within',
  'google-email': 'within',
  'google-email-only': 'within',
}
/** Rules that are not about who passes. */
const advice: RuleName[] = [
  ...(['dead', 'unknown-claim', 'always-error', 'default-audience', 'github-risky-event'] as const),
  ...(['github-old-subject', 'long-token', 'look-alike'] as const),
]

/** The questions that a policy leaves open. If a stranger passes, all are. */
function openQuestions(row: PolicyRow): Set<string> {
  const findings: readonly Finding[] = findingsOf(row)
  const rules = findings.flatMap(({ rule, detail }) =>
    rule === 'not-proven-narrow' || rule === 'not-decided' ? ((detail ?? '').split(', ') as RuleName[]) : [rule],
  )
  const open = rules.filter((rule) => !advice.includes(rule))
  // Every namespace of a cluster passes.
  const isStranger = (rule: RuleName) =>
    strangerRules.includes(rule) || (rule === 'tenant-wide' && row.issuer === 'kubernetes')
  return new Set(open.map((rule) => (isStranger(rule) ? 'stranger' : (questions[rule] ?? rule))))
}

/** Reports whether the linter follows all alternatives. What it cuts off at its bound it reports as undecided. */
function isFollowed(row: PolicyRow): boolean {
  const condition = compileCondition(row.condition ?? 'true')
  return (
    !isConditionFault(condition) && !pathsOfPolicy(policyOf(row), condition).some((path) => path.has(keyOf(excess)))
  )
}

const runs = { numRuns: 300, seed: 26 }

describe('for any policy', () => {
  test('every example passes all checks with the real condition', () => {
    let shown = 0
    fc.assert(
      fc.property(policies, ([issuer, expression]) => {
        const row = rowOf(issuer, expression)
        if (row === undefined) return
        for (const { witness } of findingsOf(row)) {
          if (witness === undefined) continue
          shown += 1
          expect(isAccepted(policyOf(row), witness)).toBe(true)
          expect(witness.iss).toBe(issuerUrls[issuer])
        }
      }),
      runs,
    )
    expect(shown).toBeGreaterThan(50)
  })

  test('another conjunct opens no question about who passes, as long as all alternatives are followed', () => {
    let narrowed = 0
    fc.assert(
      fc.property(policies, ([issuer, expression, other]) => {
        const [before, after] = [rowOf(issuer, expression), rowOf(issuer, { all: [expression, other] })]
        if (before === undefined || after === undefined || !isFollowed(after)) return
        const [wide, narrow] = [openQuestions(before), openQuestions(after)]
        if (narrow.size < wide.size) narrowed += 1
        expect(wide.has('stranger') ? [] : [...narrow.difference(wide)]).toEqual([])
      }),
      runs,
    )
    expect(narrowed).toBeGreaterThan(10)
  })

  test('order and double negation change nothing', () => {
    fc.assert(
      fc.property(policies, ([issuer, expression]) => {
        const [one, other] = [rowOf(issuer, expression), rowOf(issuer, respell(expression))]
        if (one === undefined || other === undefined) return
        // A search may find a token for one spelling and none for the other. What is suspected stays.
        const rulesOf = (row: PolicyRow) =>
          findingsOf(row).flatMap(({ rule, detail = '' }) =>
            rule === 'not-proven-narrow' || rule === 'not-decided' ? detail.split(', ') : [`${rule} ${detail}`.trim()],
          )
        expect(new Set(rulesOf(other))).toEqual(new Set(rulesOf(one)))
      }),
      runs,
    )
  })

  test('a condition that is true for a stranger is never without a finding', () => {
    fc.assert(
      fc.property(policies, ([issuer, expression]) => {
        const row = rowOf(issuer, { any: [expression, { test: 'claims.iat > 5' }] })
        if (row === undefined) return
        expect(openQuestions(row).has('stranger')).toBe(true)
      }),
      runs,
    )
  })

  test('a policy that accepts a token of a stranger is never without a finding about strangers', () => {
    let accepted = 0
    fc.assert(
      fc.property(strangerPolicies, fc.array(strangers, { minLength: 20, maxLength: 20 }), (expression, tokens) => {
        const row = rowOf('github', expression)
        if (row === undefined || !tokens.some((token) => isAccepted(policyOf(row), token))) return
        accepted += 1
        expect(openQuestions(row).has('stranger')).toBe(true)
      }),
      { numRuns: 1_000, seed: 26 },
    )
    expect(accepted).toBeGreaterThan(50)
  })
})
