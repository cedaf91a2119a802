// What a finding means depends on who gets tokens of the issuer: everyone, only the organization, or nobody knows.
import { describe, expect, test } from 'bun:test'
import type { Finding } from '../../../src/federation/lint/lint.ts'
import { lintPolicy } from '../../../src/federation/lint/lint.ts'
import { isAccepted } from '../../../src/federation/lint/witness.ts'
import { badPolicies } from './bad-policies.ts'
import { findingsOf, issuerUrls, type PolicyRow, policyOf } from './linting.ts'

const blockingIn = (findings: readonly Finding[]): string[] =>
  findings.filter(({ level }) => level === 'blocking').map(({ rule }) => rule)
const own = [
  'own',
  'enterpriseServer',
  'ownGitlab',
  'jenkins',
  'kubernetes',
  'eks',
  'entra',
  'circleci',
  'bitbucket',
  'spire',
]
const rows = Object.values(badPolicies).flat()

test('no rule blocks on an issuer whose tokens no stranger gets', () => {
  const ofOwn = rows.filter(({ issuer }) => own.includes(issuer)).map((row) => ({ ...row, shared: false }))
  expect(ofOwn.length).toBeGreaterThan(30)
  for (const row of ofOwn) expect([row, blockingIn(findingsOf(row))]).toEqual([row, []])
})

test.each(['true', '"llm" in audience', 'subject != ""', 'has(claims.sub)'])(
  '%s means every workload of one’s own issuer, and everybody elsewhere',
  (condition) => {
    const row: PolicyRow = { issuer: 'own', condition, audience: 'llm' }
    expect(findingsOf({ ...row, shared: false })).toMatchObject([{ rule: 'vacuous', level: 'warning' }])
    expect(findingsOf({ ...row, shared: true })).toMatchObject([{ rule: 'vacuous', level: 'blocking' }])
    const [asked, ...others] = findingsOf({ ...row, shared: null })
    expect(asked).toMatchObject({ rule: 'shared-unknown', level: 'blocking', detail: 'vacuous' })
    expect(isAccepted(policyOf(row), asked?.witness ?? {})).toBe(true)
    expect(others).toMatchObject([{ rule: 'vacuous', level: 'warning' }])
  },
)

test('a known service stays shared, whatever was answered', () => {
  for (const shared of [null, false, true])
    expect(blockingIn(findingsOf({ issuer: 'github', condition: 'true', shared }))).toEqual(['vacuous'])
})

describe('on a shared issuer of which nothing is known', () => {
  const lint = (row: Omit<PolicyRow, 'issuer'>) => findingsOf({ issuer: 'own', shared: true, ...row })

  test.each<Omit<PolicyRow, 'issuer'>>([
    { subject: 'batch' },
    { condition: 'subject == "batch"' },
    { condition: 'claims.sub in ["batch", "nightly"]' },
    { condition: 'subject == "batch" || subject == "nightly" && claims.a != "b"' },
    { subject: 'batch', condition: 'claims.iat < claims.exp' },
    { condition: '"ci:" + subject + "@acme" == "ci:batch@acme"' },
    { condition: 'subject == "batch" && claims.tenant + "/" + subject == "acme/batch"' },
    { subject: 'project_path:acme/app:ref_type:branch:ref:main' },
  ])('the whole subject names its owner: %p', (row) => {
    expect(lint(row)).toEqual([])
    expect(blockingIn(findingsOf({ issuer: 'own', shared: null, ...row }))).toEqual([])
  })

  test.each([
    ['claims.team == "ml"', 'not-decided'],
    ['claims.client_id == "f3a1"', 'not-decided'],
    ['subject.startsWith("acme/")', 'not-decided'],
    ['subject.endsWith("@acme.example")', 'not-decided'],
    ['subject.contains("acme")', 'not-decided'],
    ['subject == "batch" || claims.team == "ml"', 'not-decided'],
    ['"ml" in claims.groups', 'not-decided'],
    // The form of a subject says nothing about the issuer: everyone may choose it.
    ['subject.startsWith("project_path:acme/app:")', 'not-decided'],
    ['subject.startsWith("spiffe://acme.example/")', 'not-decided'],
    ['subject.startsWith("project_path:acme/app:") || claims.ref_protected == true', 'shared-no-tenant'],
    ['subject != "root"', 'vacuous'],
    ['claims.email_verified == true', 'shared-no-tenant'],
    ['subject == "batch" || claims.admin == false', 'shared-no-tenant'],
    ['size(claims.groups) > 0 || subject == "batch"', 'not-decided'],
    // What is joined to a subject is chosen by anyone who has a part of the text as their subject.
    ...[
      ...['subject + claims.nickname == "acme-batch"', 'claims.nickname + subject == "acme-batch"'],
      ...['claims.tenant + "/" + subject == "acme/batch"', 'subject + "@" + claims.org in ["batch@acme", "b@acme"]'],
      ...['["acme-batch"].exists(s, s == subject + claims.a)', '[claims.a + subject] == ["acme-batch"]'],
      ...['"acme-batch" == claims.a + subject && claims.b == true', 'subject + claims.a + claims.b == "acme-batch"'],
      ...['subject + string(claims.n) == "batch42"', '!(claims.a + subject != "acme-batch")'],
      ...['subject + (has(claims.a) ? claims.a : "") == "acme-batch"', 'subject + scopes[0] == "acme-batch"'],
      ...['audience[1] + subject == "acme-batch"', 'token_type + subject == "acme-batch"'],
      ...['{"a/b": true}[claims.a + "/" + subject]', 'claims.a + subject == "b" || subject == "c"'],
      '(claims.a == "x" ? subject + claims.a : subject) == "acme-x"',
    ].map((condition): [string, string] => [condition, 'not-decided']),
  ])('nothing else does: %s is %s', (condition, rule) => {
    expect(blockingIn(lint({ condition }))).toContain(rule)
    expect(findingsOf({ issuer: 'own', shared: null, condition })[0]).toMatchObject({ rule: 'shared-unknown' })
  })
})

test('what one alternative shows is not undecided because of another', () => {
  const condition = 'claims.admin == false || claims.team == "ml"'
  expect(blockingIn(findingsOf({ issuer: 'own', shared: true, condition }))).toEqual(['shared-no-tenant'])
})

test('an issuer of which nobody has answered is read by the subjects of its policies, like one’s own', () => {
  const row: PolicyRow = { issuer: 'own', subject: 'system:serviceaccount:ml:default', maxTokenAge: null }
  const [asked, own] = [null, false].map((shared) => findingsOf({ ...row, shared }).map(({ rule }) => rule))
  expect(asked).toEqual(['k8s-default-account', 'k8s-recreated', 'long-token'])
  expect(asked).toEqual(own)
})

test('an exception for what would block answers for one policy', () => {
  const policy = { ...policyOf({ issuer: 'own', condition: 'true' }) }
  const issuer = { issuerUrl: issuerUrls.own, maxTokenAgeSeconds: null, shared: null }
  const rulesWith = (rule: string) =>
    lintPolicy({ ...policy, lintExceptions: [{ rule, because: 'a demonstration' }] }, issuer).map((each) => each.rule)
  expect(rulesWith('vacuous')).toEqual(['vacuous'])
  expect(rulesWith('contains-only')).toEqual(['shared-unknown', 'vacuous'])
})
