// Paths admit at least what the condition admits: for every token for which a condition is true, or false, a path of
// its translation holds.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { activationOf } from '../../../src/federation/condition/activation.ts'
import { compileCondition, isConditionFault } from '../../../src/federation/condition/compile.ts'
import { equalsAffixed, testsAffixed } from '../../../src/federation/lint/affixes.ts'
import { type Atom, holdsText, type Path } from '../../../src/federation/lint/atom.ts'
import { valueAt } from '../../../src/federation/lint/candidate.ts'
import { factsOf } from '../../../src/federation/lint/fact.ts'
import { pathsOfCondition } from '../../../src/federation/lint/translation.ts'
import type { JsonObject } from '../../../src/tokens/jwt-text.ts'
import { conditionsOf } from './random-conditions.ts'

const words = ['', 'a', 'b', 'ab', 'ba', 'a/', 'ab/a', '/', '1', 'true']
const conditions = conditionsOf({
  texts: ['claims.a', 'claims.a', 'claims.b', 'subject', 'claims["c"]'],
  numbers: ['claims.n', 'claims.n'],
  lists: ['claims.g', 'claims.g', 'audience'],
  flags: ['claims.f', 'claims.f == true', '1 < 2'],
  words,
  digits: [0, 1, 2],
})
const word = fc.constantFrom(...words)
const absent = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined, freq: 4 })
const tokens = fc.record({
  sub: word,
  aud: fc.array(word, { maxLength: 2 }),
  a: absent(word),
  b: fc.oneof({ arbitrary: word, weight: 5 }, fc.constantFrom(1, true, null)),
  c: absent(word),
  n: fc.constantFrom(0, 1, 2, '1'),
  g: absent(fc.array(word, { maxLength: 3 })),
  f: fc.boolean(),
})

function holds(atom: Atom, token: JsonObject): boolean {
  if (atom.kind === 'opaque') return true
  const value = valueAt(token, atom.claim)
  const isPresent = value !== undefined
  switch (atom.kind) {
    case 'present':
      return isPresent !== atom.negated
    case 'among':
      return isPresent && atom.values.includes(value as string) !== atom.negated
    case 'text':
      return typeof value === 'string' && holdsText(value, atom.operator, atom.text) !== atom.negated
    case 'order': {
      const { operator, value: limit } = atom
      if (typeof value !== 'number') return false
      return operator === '<'
        ? value < limit
        : operator === '<='
          ? value <= limit
          : operator === '>'
            ? value > limit
            : value >= limit
    }
    case 'some':
      return Array.isArray(value) && value.some((item) => atom.item.every((each) => holds(each, { '@': item })))
    case 'every':
      return Array.isArray(value)
    case 'converted':
      return isPresent && (atom.to === 'number' || holds(atom.test, { [atom.claim]: String(value) }))
  }
}

const holdsPath = (path: Path, token: JsonObject) =>
  factsOf(path.values()) !== undefined && [...path.values()].every((atom) => holds(atom, token))

test('a path holds for every token for which a condition is true, and for which it is false', () => {
  let judged = 0
  fc.assert(
    fc.property(conditions, fc.array(tokens, { minLength: 10, maxLength: 10 }), (source, drawn) => {
      const condition = compileCondition(source)
      if (isConditionFault(condition)) return
      const paths = { true: pathsOfCondition(condition), false: pathsOfCondition(condition, false) }
      for (const claims of drawn) {
        const token = JSON.parse(JSON.stringify(claims)) as JsonObject & { sub: string; aud: string[] }
        const view = activationOf({ subject: token.sub, audience: token.aud, payload: token } as never, true)
        let result: unknown
        try {
          result = condition.evaluate(view as never)
        } catch {
          continue
        }
        judged += 1
        const ofResult = result === true ? paths.true : paths.false
        if (!ofResult.some((path) => holdsPath(path, token)))
          throw new Error(
            `${source}\n${JSON.stringify(token)}\n${JSON.stringify(ofResult.map((p) => [...p.values()]))}`,
          )
      }
    }),
    { numRuns: Number(process.env.RUNS ?? 1_000), seed: 26 },
  )
  expect(judged).toBeGreaterThan(1_000)
})

test('a test of a joined text asks of its claim exactly what it says', () => {
  const affixes = ['', 'a', 'b', 'ab', 'aa', '/']
  const values = ['', 'a', 'b', 'ab', 'ba', 'aa', 'aab', '/a', 'a/', 'bb/']
  for (const operator of ['startsWith', 'endsWith', 'contains'] as const)
    for (const [before, after, text] of affixes.flatMap((one) =>
      affixes.flatMap((other) => values.map((value) => [one, other, value] as const)),
    )) {
      const affixed = { claim: 'a', before, after }
      const paths = [true, false].map((truth) => testsAffixed(affixed, operator, text, truth) ?? [])
      const equal = [true, false].map((truth) => equalsAffixed(affixed, text, truth))
      for (const a of values) {
        const whole = before + a + after
        const results = [...paths, ...equal].map((each) => each.some((path) => holdsPath(path, { a })))
        const [passes, equals] = [holdsText(whole, operator, text), whole === text]
        expect({ before, a, after, operator, text, results }).toEqual({
          ...{ before, a, after, operator, text },
          results: [passes, !passes, equals, !equals],
        })
      }
    }
})
