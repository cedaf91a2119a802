// Whatever the condition: if a stranger's token passes, the linter refuses the policy.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { compileCondition, isConditionFault } from '../../../src/federation/condition/compile.ts'
import { isAccepted } from '../../../src/federation/lint/witness.ts'
import { findingsOf, type PolicyRow, policyOf } from './linting.ts'
import { conditionsOf } from './random-conditions.ts'
import { platforms } from './random-strangers.ts'

/** More of them by hand: set RUNS. */
const conditionsEach = Number(process.env.RUNS ?? 300)
const tokensEach = 20

test.each(platforms)(
  'a stranger passes no policy of $issuer that is not refused',
  ({ issuer, strangers, vocabulary, shownMin }) => {
    let [passed, saved, decided] = [0, 0, 0]
    const tokens = fc.array(strangers, { minLength: tokensEach, maxLength: tokensEach })
    fc.assert(
      fc.property(conditionsOf(vocabulary, 2), tokens, (condition, drawn) => {
        if (isConditionFault(compileCondition(condition))) return
        const row: PolicyRow = { issuer, condition, shared: true }
        const policy = policyOf(row)
        const blocking = findingsOf(row).filter(({ level }) => level === 'blocking')
        if (blocking.length === 0) saved += 1
        const token = drawn.find((each) => isAccepted(policy, each))
        if (token === undefined) return
        passed += 1
        if (blocking.some(({ rule }) => rule !== 'not-decided')) decided += 1
        if (blocking.length === 0)
          throw new Error(`${condition}\n${JSON.stringify(token)}\n${findingsOf(row).map(({ rule }) => rule)}`)
      }),
      { numRuns: conditionsEach, seed: 26 },
    )
    expect(passed).toBeGreaterThan(conditionsEach / 10)
    expect(saved).toBeGreaterThan(conditionsEach / 30)
    // The others are refused because they are not decided.
    expect(decided / passed).toBeGreaterThan(shownMin)
  },
)

test.each(platforms)('a part that is not followed neither opens nor closes a policy of $issuer', (platform) => {
  const { issuer, vocabulary } = platform
  const isRefused = (condition: string) =>
    findingsOf({ issuer, condition, shared: true }).some(({ level }) => level === 'blocking')
  let saved = 0
  fc.assert(
    fc.property(conditionsOf(vocabulary, 2), (condition) => {
      const beside = [
        `(${condition}) && claims.jti + claims.iss != "x"`,
        `claims.iss + claims.jti < "x" && (${condition})`,
      ]
      if (beside.some((each) => isConditionFault(compileCondition(each)))) return
      const refused = isRefused(condition)
      if (!refused) saved += 1
      expect({ condition, refused: beside.map(isRefused) }).toEqual({ condition, refused: [refused, refused] })
    }),
    { numRuns: Math.ceil(conditionsEach / 2), seed: 26 },
  )
  expect(saved).toBeGreaterThan(5)
})
