// What an edit changes is shown by tokens that only one of both policies accepts.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { findAcceptedOnlyBy } from '../../../src/federation/lint/difference.ts'
import { issuerUrls, type PolicyRow, policyOf } from './linting.ts'
import { policies, respell, rowOf } from './random-policies.ts'

const sideOf = (row: PolicyRow) => ({
  policy: policyOf(row),
  issuer: { issuerUrl: issuerUrls[row.issuer], maxTokenAgeSeconds: null, shared: null },
})
const differenceOf = (before: PolicyRow, after: PolicyRow) => ({
  gains: findAcceptedOnlyBy(sideOf(after), sideOf(before)),
  loses: findAcceptedOnlyBy(sideOf(before), sideOf(after)),
})

const exact: PolicyRow = { issuer: 'github', subject: 'repo:acme/app:ref:refs/heads/main' }
const edits: [name: string, before: PolicyRow, after: PolicyRow, gains: object | null, loses: object | null][] = [
  [
    'a wider subject',
    exact,
    { issuer: 'github', condition: 'subject.startsWith("repo:acme/app:")' },
    { sub: 'repo:acme/app:pull_request' },
    null,
  ],
  [
    'a narrower subject',
    { issuer: 'github', condition: 'claims.repository == "acme/app"' },
    { issuer: 'github', condition: 'claims.repository == "acme/app" && claims.ref == "refs/heads/main"' },
    null,
    { repository: 'acme/app', ref: 'refs/pull/7/merge' },
  ],
  [
    'another subject',
    exact,
    { ...exact, subject: 'repo:acme/app:environment:prod' },
    { sub: 'repo:acme/app:environment:prod' },
    { sub: exact.subject },
  ],
  [
    'another value',
    { issuer: 'own', condition: 'claims.azp in ["a", "b"]' },
    { issuer: 'own', condition: 'claims.azp in ["b", "c"]' },
    { azp: 'c' },
    { azp: 'a' },
  ],
  [
    'another claim',
    { issuer: 'own', condition: 'claims.azp == "a"' },
    { issuer: 'own', condition: 'claims.team == "a"' },
    { team: 'a' },
    { azp: 'a' },
  ],
  ['a scope', { issuer: 'own', subject: 's' }, { issuer: 'own', subject: 's', scope: 'llm' }, null, { sub: 's' }],
  ['another audience', exact, { ...exact, audience: 'other' }, { aud: 'other' }, { sub: exact.subject }],
  [
    'another issuer',
    { issuer: 'own', subject: 's' },
    { issuer: 'spire', subject: 's' },
    { iss: issuerUrls.spire },
    { iss: issuerUrls.own },
  ],
  [
    'a question before a claim',
    { issuer: 'own', subject: 's', condition: 'claims.a != "x"' },
    { issuer: 'own', subject: 's', condition: '!has(claims.a) || claims.a != "x"' },
    { sub: 's' },
    null,
  ],
  [
    'the same in other words',
    { issuer: 'own', condition: 'claims.a == "x" || claims.a == "y"' },
    { issuer: 'own', condition: 'claims.a in ["y", "x"]' },
    null,
    null,
  ],
  [
    'a condition that the subject implies',
    exact,
    { ...exact, condition: 'subject.startsWith("repo:acme/")' },
    null,
    null,
  ],
]

describe('an edit', () => {
  test.each(edits)('that makes %s', (_, before, after, gains, loses) => {
    const difference = differenceOf(before, after)
    expect({ gains: difference.gains !== undefined, loses: difference.loses !== undefined }).toEqual({
      gains: gains !== null,
      loses: loses !== null,
    })
    expect(difference).toMatchObject({ ...(gains === null ? {} : { gains }), ...(loses === null ? {} : { loses }) })
  })
})

describe('for any policy', () => {
  test('other spelling makes no difference', () => {
    fc.assert(
      fc.property(policies, ([issuer, expression]) => {
        const [before, after] = [rowOf(issuer, expression), rowOf(issuer, respell(expression))]
        fc.pre(before !== undefined && after !== undefined)
        expect(differenceOf(before, after)).toEqual({ gains: undefined, loses: undefined })
      }),
      { numRuns: 200, seed: 26 },
    )
  })

  test('another conjunct lets no token in, and another alternative keeps none out', () => {
    let lost = 0
    fc.assert(
      fc.property(policies, ([issuer, expression, other]) => {
        const [alone, both] = [rowOf(issuer, expression), rowOf(issuer, { all: [expression, other] })]
        if (alone === undefined || both === undefined) return
        const { gains, loses } = differenceOf(alone, both)
        expect(gains).toBeUndefined()
        expect(differenceOf(both, alone).loses).toBeUndefined()
        if (loses !== undefined) lost += 1
      }),
      { numRuns: 200, seed: 26 },
    )
    expect(lost).toBeGreaterThan(10)
  })
})
