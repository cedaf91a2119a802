// Narrow policies save without an exception.
import { expect, test } from 'bun:test'
import { goodPolicies, spotlessConditions } from './good-policies.ts'
import { findingsOf } from './linting.ts'

const named = goodPolicies.map((row) => [`${row.issuer}: ${row.subject ?? row.condition}`, row] as const)

test('at least sixty policies are narrow', () => {
  expect(goodPolicies.length).toBeGreaterThanOrEqual(60)
})

test.each(named)('nothing blocks %s', (_, row) => {
  expect(findingsOf(row).filter(({ level }) => level === 'blocking')).toEqual([])
})

test.each(named)('some token of the issuer passes %s', (_, row) => {
  expect(findingsOf(row).map(({ rule }) => rule)).not.toContain('dead')
})

test.each(named)('what is found in %s can be shown', (_, row) => {
  const undecided = findingsOf(row).filter(({ rule }) => rule === 'not-proven-narrow' || rule === 'not-decided')
  expect(undecided).toEqual([])
})

test.each(named.filter(([, row]) => spotlessConditions.includes(row.condition ?? '')))(
  'nothing is found in %s',
  (_, row) => {
    expect(findingsOf(row)).toEqual([])
  },
)

test('the policies about which nothing is found are in the corpus', () => {
  const conditions = goodPolicies.map(({ condition }) => condition ?? '')
  expect(spotlessConditions.filter((condition) => !conditions.includes(condition))).toEqual([])
})
