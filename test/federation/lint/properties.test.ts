// What must hold for any policy: examples pass the real checks, more conditions never open more, and spelling does not
// matter.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { compileCondition, isConditionFault } from '../../../src/federation/condition/compile.ts'
import type { Finding } from '../../../src/federation/lint/lint.ts'
import { type RuleName, strangerRules } from '../../../src/federation/lint/rules.ts'
import { isAccepted } from '../../../src/federation/lint/witness.ts'
import { findingsOf, type IssuerName, issuerUrls, type PolicyRow, policyOf } from './linting.ts'

type Expression =
  | { test: string }
  | { not: Expression }
  | { all: Expression[] }
  | { any: Expression[] }
  | { if: [Expression, Expression, Expression] }

const claims: Partial<Record<IssuerName, string[]>> = {
  github: [
    'sub',
    'repository',
    'repository_id',
    'repository_owner',
    'ref',
    'environment',
    'event_name',
    'job_workflow_ref',
  ],
  gitlab: ['sub', 'project_path', 'project_id', 'namespace_path', 'ref', 'ref_protected', 'environment'],
  kubernetes: ['sub', '["kubernetes.io"].namespace', '["kubernetes.io"].serviceaccount.name'],
  google: ['sub', 'email', 'email_verified', 'hd'],
  terraform: ['sub', 'terraform_organization_id', 'terraform_workspace_name', 'terraform_run_phase'],
  own: ['sub', 'azp', 'groups', 'scope'],
}
const texts = [
  ...[
    'acme',
    'acme/',
    'acme/app',
    'acme/app-',
    '1',
    'refs/heads/main',
    'refs/heads/',
    'production',
    'pull_request',
    'push',
  ],
  ...['repo:acme', 'repo:acme/', 'repo:acme/app:', 'repo:acme/app:ref:refs/heads/main', 'repo:acme/app:pull_request'],
  ...[
    'project_path:acme',
    'project_path:acme/app:ref_type:branch:ref:main',
    'system:serviceaccount:ml:',
    'true',
    'apply',
  ],
  ...[
    'system:serviceaccount:ml:default',
    'acme/ci/.github/workflows/a.yml@refs/heads/main',
    '@acme.example',
    '117',
    '',
  ],
]
/** Texts of other platforms would make the linter take an unknown issuer for one of them. */
const plainTexts = texts.filter((text) => !/^(?:project_path|system):/.test(text))

function testOf(issuer: IssuerName): fc.Arbitrary<Expression> {
  const known = issuer === 'own' ? plainTexts : texts
  const literal = fc.constantFrom(...known).map((text) => JSON.stringify(text))
  const claim = fc
    .constantFrom(...(claims[issuer] ?? []))
    .map((name) => (name.startsWith('[') ? `claims${name}` : name === 'sub' ? 'subject' : `claims.${name}`))
  const list = fc.array(literal, { minLength: 1, maxLength: 3 }).map((items) => `[${items.join(', ')}]`)
  const shapes = [
    fc.tuple(claim, literal).map(([one, other]) => `${one} == ${other}`),
    fc.tuple(claim, literal).map(([one, other]) => `${other} != ${one}`),
    fc.tuple(claim, list).map(([one, other]) => `${one} in ${other}`),
    fc
      .tuple(claim, fc.constantFrom('startsWith', 'endsWith', 'contains'), literal)
      .map(([one, name, other]) => `${one}.${name}(${other})`),
    fc.tuple(claim, list).map(([one, other]) => `${other}.exists(x, ${one}.startsWith(x + "/"))`),
    fc.tuple(claim, literal).map(([one, other]) => (one === 'subject' ? 'true' : `${one}.exists(x, x == ${other})`)),
    claim.map((one) => (one === 'subject' || one.includes('[') ? 'has(claims.jti)' : `has(${one})`)),
    claim.map((one) => (one === 'subject' ? 'size(subject) > 7' : `size(${one}) > 7`)),
    fc.constantFrom('true', 'false', '1 == 1', 'claims.iat > 5', '"x" in scopes', 'claims.email_verified == true'),
  ]
  return fc.oneof(...shapes).map((test) => ({ test }))
}

function expressionOf(issuer: IssuerName): fc.Arbitrary<Expression> {
  const { whole } = fc.letrec<{ whole: Expression }>((tie) => ({
    whole: fc.oneof(
      { maxDepth: 2, withCrossShrink: true },
      testOf(issuer),
      tie('whole').map((not) => ({ not })),
      fc.array(tie('whole'), { minLength: 2, maxLength: 3 }).map((all) => ({ all })),
      fc.array(tie('whole'), { minLength: 2, maxLength: 3 }).map((any) => ({ any })),
      fc.tuple(tie('whole'), tie('whole'), tie('whole')).map((parts) => ({ if: parts })),
    ),
  }))
  return whole
}

function write(expression: Expression): string {
  if ('test' in expression) return expression.test
  if ('not' in expression) return `!(${write(expression.not)})`
  if ('all' in expression) return expression.all.map((each) => `(${write(each)})`).join(' && ')
  if ('any' in expression) return expression.any.map((each) => `(${write(each)})`).join(' || ')
  const [condition, yes, no] = expression.if.map((each) => `(${write(each)})`)
  return `${condition} ? ${yes} : ${no}`
}

/** The same condition with every order turned around and every part negated twice. */
function respell(expression: Expression): Expression {
  if ('test' in expression) return { not: { not: expression } }
  if ('not' in expression) return { not: respell(expression.not) }
  if ('all' in expression) return { not: { not: { all: expression.all.map(respell).toReversed() } } }
  if ('any' in expression) return { not: { all: expression.any.map((each) => ({ not: respell(each) })).toReversed() } }
  const [condition, yes, no] = expression.if.map(respell) as [Expression, Expression, Expression]
  return { if: [{ not: condition }, no, yes] }
}

const policies = fc
  .constantFrom(...(Object.keys(claims) as IssuerName[]))
  .chain((issuer) => fc.tuple(fc.constant(issuer), expressionOf(issuer), expressionOf(issuer)))

function rowOf(issuer: IssuerName, expression: Expression): PolicyRow | undefined {
  const condition = write(expression)
  return isConditionFault(compileCondition(condition)) ? undefined : { issuer, condition }
}

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
  ...(['github-old-subject', 'long-token'] as const),
]

/** The questions that a policy leaves open. If a stranger passes, all are. */
function openQuestions(row: PolicyRow): Set<string> {
  const findings: readonly Finding[] = findingsOf(row)
  const rules = findings.flatMap(({ rule, detail }) =>
    rule === 'not-proven-narrow' ? ((detail ?? '').replace('not decided: ', '').split(', ') as RuleName[]) : [rule],
  )
  const open = rules.filter((rule) => !advice.includes(rule))
  // Every namespace of a cluster passes.
  const isStranger = (rule: RuleName) =>
    strangerRules.includes(rule) || (rule === 'tenant-wide' && row.issuer === 'kubernetes')
  return new Set(open.map((rule) => (isStranger(rule) ? 'stranger' : (questions[rule] ?? rule))))
}

const runs = { numRuns: 300 }

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

  test('another conjunct opens no question about who passes', () => {
    let narrowed = 0
    fc.assert(
      fc.property(policies, ([issuer, expression, other]) => {
        const [before, after] = [rowOf(issuer, expression), rowOf(issuer, { all: [expression, other] })]
        if (before === undefined || after === undefined) return
        const [wide, narrow] = [openQuestions(before), openQuestions(after)]
        if (narrow.size < wide.size) narrowed += 1
        if (!wide.has('stranger')) expect([...wide]).toEqual(expect.arrayContaining([...narrow]))
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
        const rulesOf = (row: PolicyRow) => findingsOf(row).map(({ rule, detail }) => `${rule} ${detail ?? ''}`)
        expect(rulesOf(other)).toEqual(rulesOf(one))
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
})
