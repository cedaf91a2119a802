// A condition that can be judged on hashes decides as it does on the claims themselves.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { checkCondition, compileCondition, isConditionFault } from '../../../src/federation/condition/compile.ts'
import { createClaimHash } from '../../../src/federation/recording/claim-hash.ts'
import { hideCondition } from '../../../src/federation/recording/hidden-condition.ts'
import type { SubjectToken } from '../../../src/federation/subject-token/claims.ts'

const hash = createClaimHash('0b'.repeat(32), 'organization')

function compile(source: string) {
  const condition = compileCondition(source)
  if (isConditionFault(condition)) throw new Error(`${source}: ${condition.message}`)
  return condition
}

function tokenWith(claims: Record<string, unknown>, isHidden: boolean): SubjectToken {
  const { aud, ...rest } = claims
  const hidden = isHidden ? (hash.hide(rest) as Record<string, unknown>) : rest
  const subject = 'me'
  return {
    algorithm: 'RS256',
    kid: undefined,
    issuer: '',
    subject,
    audience: ['x'],
    payload: { ...hidden, aud, sub: subject },
  }
}

const decide = (condition: ReturnType<typeof compile>, claims: Record<string, unknown>, isHidden: boolean) =>
  checkCondition(condition, tokenWith(claims, isHidden))?.refused ?? 'true'

const literal = fc.constantFrom('"a"', '"b"', '"k"', '7', '7.0', '-1', 'true', 'false', 'null', '"it\'s \\"x\\""')
const member = fc.constantFrom(
  'claims.s',
  'claims.n',
  'claims["f"]',
  'claims.l',
  'claims.m.k',
  'claims.m',
  'claims.none',
  'claims.sub',
  'subject',
)
const operand = fc.oneof(member, literal)
const { condition: conditions } = fc.letrec<{ condition: string }>((tie) => ({
  condition: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.tuple(operand, fc.constantFrom('==', '!='), operand).map(([one, sign, other]) => `${one} ${sign} ${other}`),
    fc.tuple(operand, member).map(([value, list]) => `${value} in ${list}`),
    fc.tuple(member, fc.array(literal, { maxLength: 3 })).map(([value, list]) => `${value} in [${list.join()}]`),
    fc.constantFrom('has(claims.s)', 'has(claims.none)', 'has(claims.m.k)', '"s" in claims', 'claims.f == true'),
    fc.constantFrom('subject.startsWith("m")', 'claims.s.startsWith("a")', 'size(claims.l) == 2', 'claims.n > 3'),
    fc
      .tuple(
        fc.constantFrom('claims.l', 'claims.m', 'audience'),
        fc.constantFrom('exists', 'all', 'exists_one'),
        literal,
      )
      .map(([list, macro, value]) => `${list}.${macro}(x, x == ${value} || x in ["b", 7])`),
    fc
      .tuple(tie('condition'), fc.constantFrom('&&', '||'), tie('condition'))
      .map(([one, sign, other]) => `(${one}) ${sign} (${other})`),
    tie('condition').map((inner) => `!(${inner})`),
    fc
      .tuple(tie('condition'), tie('condition'), tie('condition'))
      .map(([one, two, three]) => `(${one}) ? (${two}) : (${three})`),
  ),
}))
const scalar = fc.constantFrom('a', 'b', 'k', 7, -1, true, false, null, 'it\'s "x"', 'c', 0.5)
const token = fc.record(
  {
    s: scalar,
    n: scalar,
    f: fc.oneof(fc.boolean(), scalar),
    l: fc.array(scalar, { maxLength: 3 }),
    m: fc.record({ k: scalar, b: scalar }, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
)

test('every condition that can be judged on hashes decides as on the claims', () => {
  let judged = 0
  fc.assert(
    fc.property(conditions, fc.array(token, { minLength: 1, maxLength: 5 }), (source, tokens) => {
      const condition = compileCondition(source)
      fc.pre(!isConditionFault(condition))
      if (isConditionFault(condition)) return
      const hidden = hideCondition(condition, hash)
      if (hidden === undefined) return
      judged += 1
      for (const claims of tokens) {
        const [before, after] = [decide(condition, claims, false), decide(hidden, claims, true)]
        if (before !== after) throw new Error(`${source} of ${JSON.stringify(claims)}: ${before}, on hashes ${after}`)
      }
    }),
    { numRuns: 1_500 },
  )
  expect(judged).toBeGreaterThan(300)
})

describe('on hashes', () => {
  test.each([
    'claims.repository == "acme/app" && claims.ref != "refs/heads/main"',
    'claims.environment in ["staging", "production"]',
    '"admins" in claims.groups',
    'claims.groups.exists(name, name == "admins")',
    'claims["kubernetes.io"].namespace == "prod"',
    'has(claims.environment) && claims.count == 3',
    'claims.actor == claims.owner',
    'subject.startsWith("repo:acme/") && claims.sub.endsWith("main")',
  ])('%s is judged', (source) => {
    expect(hideCondition(compile(source), hash)).toBeDefined()
  })

  test.each([
    'claims.ref.startsWith("refs/heads/")',
    'claims.count > 3',
    'size(claims.name) == 3',
    'claims.actor == subject',
    'claims.actor == "a" + "b"',
    'int(claims.count) == 3',
    'size(claims) == 3',
    '["a"].exists(x, x == claims.name)',
  ])('%s is not judged', (source) => {
    expect(hideCondition(compile(source), hash)).toBeUndefined()
  })
})
