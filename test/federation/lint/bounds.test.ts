// A lint takes bounded time, whatever the condition: paths, examples and visited nodes are limited.
import { describe, expect, test } from 'bun:test'
import { cpuMilliseconds } from '../../support/cpu-time.ts'
import { goodPolicies } from './good-policies.ts'
import { findingsOf } from './linting.ts'
import { worstConditions } from './worst-conditions.ts'

test('a claim named like a member of all objects stays within the example', () => {
  const conditions = ['claims.__proto__.admin == "x"', 'claims.a["__proto__"].admin == "x"', 'claims.toString == "x"']
  for (const condition of conditions) {
    const rules = findingsOf({ issuer: 'github', condition }).map(({ rule }) => rule)
    expect(rules).toContain(condition.includes('__proto__') ? 'not-decided' : 'shared-no-tenant')
  }
  expect(({} as { admin?: string }).admin).toBeUndefined()
})

describe('the time of a lint', () => {
  test.each(Object.entries(worstConditions))('of %s stays below 50 ms of CPU', (_, condition) => {
    expect(findingsOf({ issuer: 'github', condition }).length).toBeGreaterThan(0)
    expect(cpuMilliseconds(() => findingsOf({ issuer: 'github', condition }))).toBeLessThan(50)
  })

  test('of an ordinary policy stays below 5 ms of CPU', () => {
    const milliseconds = cpuMilliseconds(() => goodPolicies.map(findingsOf))
    expect(milliseconds / goodPolicies.length).toBeLessThan(5)
  })
})
