// Whose usage it is under a policy (reference: Attribution): a short text that the policy makes of a verified token.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { attribute } from '../../src/federation/attribution.ts'
import { compileText, conditionEnvironment, isConditionFault } from '../../src/federation/condition/compile.ts'
import type { JsonObject } from '../../src/tokens/jwt-text.ts'

const tokenOf = (payload: JsonObject) => ({
  ...{ algorithm: 'ES256' as const, kid: undefined, issuer: 'https://idp.example.com' },
  ...{ subject: 'workload', audience: ['llm'], payload },
})
const attributed = (
  attributeTo: string | null,
  payload: JsonObject = {},
  attributeEnvironment = conditionEnvironment,
) => attribute({ attributeTo, attributeEnvironment }, tokenOf(payload))

describe('usage is attributed to', () => {
  const rows: [to: string | null, payload: JsonObject, expected: string][] = [
    [null, {}, 'workload'],
    ['subject', {}, 'workload'],
    ['claims.repository_id', { repository_id: '456789' }, '456789'],
    ['string(claims.run)', { run: 7 }, '7'],
    ['claims["kubernetes.io"].namespace', { 'kubernetes.io': { namespace: 'ml' } }, 'ml'],
    ['claims.a + "/" + claims.b', { a: 'x', b: 'y' }, 'x/y'],
    ['has(claims.team) ? claims.team : "none"', {}, 'none'],
    ['claims.name', { name: '𝕏'.repeat(128) }, '𝕏'.repeat(128)],
  ]
  for (const [to, payload, expected] of rows)
    test(`${to ?? 'the subject'}`, () => expect(attributed(to, payload)).toBe(expected))
})

test('an expression of an earlier engine is not evaluated: its meaning could have changed', () => {
  const refusal = attributed('subject', {}, conditionEnvironment - 1)
  expect(refusal).toMatchObject({ refused: 'attribution_failed', detail: expect.stringContaining('save it again') })
})

test('claims beyond the bounds of conditions refuse the exchange only where claims are read', () => {
  const large = { deep: 'x'.repeat(5_000) }
  expect(attributed('claims.deep', large)).toMatchObject({ refused: 'attribution_failed' })
  expect(attributed('subject', large)).toBe('workload')
})

test.each([
  ['claims.repository_id == "1"', 'must be a string, not bool'],
  ['size(subject)', 'must be a string, not int'],
  ['claims', 'must be a string, not map'],
  ['subject.matches("a")', 'not available'],
  ['unknown', 'Unknown variable'],
  [`"${'x'.repeat(2_000)}"`, 'at most 2000 characters'],
])('%p cannot be saved', (source, message) => {
  const compiled = compileText(source)
  expect(isConditionFault(compiled) ? compiled.message : 'compiled').toContain(message)
})

test('whatever a claim has, the outcome is a short text or a refusal', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const outcome = attributed('claims.value', { value })
      const text = typeof outcome === 'string' ? outcome : ''
      expect<unknown>(outcome).toEqual(text === '' ? expect.objectContaining({ refused: 'attribution_failed' }) : value)
      expect([...text].length).toBeLessThanOrEqual(128)
    }),
  )
})
