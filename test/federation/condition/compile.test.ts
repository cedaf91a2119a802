// Conditions (reference: Condition): what may be saved and where the fault is, what an accepted one says of a token, and that no
// accepted one takes long on any token.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  checkCondition,
  compileCondition,
  describeConditionFault,
  isConditionFault,
} from '../../../src/federation/condition/compile.ts'
import type { SubjectToken } from '../../../src/federation/subject-token/claims.ts'
import { conditionNanosecondsMax } from '../../../src/limits.ts'
import { compiled, conditionToken } from '../../support/condition.ts'
import { cpuMilliseconds } from '../../support/cpu-time.ts'

const token = conditionToken({ constructor: 'c' })
const judge = (source: string, changes: Partial<SubjectToken> = {}) =>
  checkCondition(compiled(source), { ...token, ...changes })

describe('is true:', () => {
  const rows = [
    'subject == "repo:acme/app:ref:refs/heads/main"',
    'subject.startsWith("repo:acme/") && subject.endsWith("main") && subject.contains("app")',
    '"aud" in audience',
    'audience.exists(a, a == "other")',
    'scopes == [] && token_type == ""',
    'claims.environment == "production"',
    'claims["environment"] in ["production", "staging"]',
    'claims.nested.a.b == "x"',
    'has(claims.nested.a.b) && !has(claims.nested.c)',
    '"environment" in claims',
    'claims.groups.exists(g, g.startsWith("team-"))',
    'claims.groups.filter(g, g.startsWith("team-")).size() == 1',
    'claims.groups.exists_one(g, g == "other")',
    'claims.numbers.all(n, n > 0)',
    'claims.empty.all(n, n > 0)',
    'claims.numbers.map(n, int(n) * 2) == [2, 4]',
    'claims.iat == 1700000000',
    'int(claims.iat) + 1 == 1700000001',
    'string(claims.iat) == "1700000000" && double(claims.iat) > 1.0',
    'claims.none == null',
    'claims.constructor == "c"',
    'claims.yes == true ? subject != "" : false',
    'claims.yes == true || claims.missing == 1',
    'claims.missing == 1 || claims.yes == true',
    '-9223372036854775808 < 0',
    'size("𐀀") == 1',
  ]
  for (const source of rows) test(source, () => expect(judge(source)).toBeUndefined())
})

describe('is false, which is distinguished from an error:', () => {
  const rows = [
    'subject == "other"',
    'claims.environment == "Production"',
    'claims.iat == "1700000000"',
    'has(claims.no)',
  ]
  for (const source of rows) test(source, () => expect(judge(source)).toEqual({ refused: 'condition_false' }))
})

describe('is an error with its reason, never false and never true:', () => {
  const rows: [source: string, detail: RegExp][] = [
    ['claims.missing == 1', /missing.*has\(/],
    ['!(claims.missing == 1)', /missing/],
    ['claims.toString == 1', /toString/],
    ['claims.__proto__ == 1', /__proto__/],
    ['claims.groups[7] == "x"', /index 7/],
    ['claims.iat + 1 > 0', /int\(claims\.iat\)/],
    ['claims.yes.startsWith("t")', /./],
    ['claims.environment && true', /./],
    ['claims.environment ? true : false', /./],
    ['int(claims.environment) == 1', /./],
    ['1 / (size(subject) - size(subject)) == 1', /zero/],
    ['size(subject) + 9223372036854775807 > 0', /overflow/],
  ]
  for (const [source, detail] of rows) {
    test(source, () =>
      expect(judge(source)).toEqual({ refused: 'condition_error', detail: expect.stringMatching(detail) }),
    )
  }
})

describe('with a condition present, a token is refused whose', () => {
  const rows: [name: string, changes: Partial<SubjectToken>, refusal: object][] = [
    ['scopes are a text', { payload: { scopes: 'a' } }, { refused: 'scopes_wrong_type' }],
    ['scopes are null', { payload: { scopes: null } }, { refused: 'scopes_wrong_type' }],
    ['scopes hold a number', { payload: { scopes: ['a', 1] } }, { refused: 'scopes_wrong_type' }],
    ['token_type is a number', { payload: { token_type: 1 } }, { refused: 'token_type_wrong_type' }],
    ['token_type is null', { payload: { token_type: null } }, { refused: 'token_type_wrong_type' }],
    ['audiences are too many', { audience: Array(257).fill('a') }, { refused: 'claims_too_large' }],
  ]
  for (const [name, changes, refusal] of rows) test(name, () => expect(judge('true', changes)).toMatchObject(refusal))

  let deep: unknown = 1
  for (let depth = 0; depth < 20; depth++) deep = { deep }
  const excessive: [name: string, claim: unknown][] = [
    ['claim is a long text', 'x'.repeat(4_097)],
    ['claim has many items', Array(257).fill(0)],
    ['claim has many members', Object.fromEntries(Array.from({ length: 257 }, (_, index) => [index, 0]))],
    ['claim is nested deeply', deep],
  ]
  for (const [name, claim] of excessive) {
    test(`${name}, where the condition looks at claims, and only there`, () => {
      expect(judge('has(claims.a)', { payload: { a: claim } })).toMatchObject({ refused: 'claims_too_large' })
      expect(judge('subject != ""', { payload: { a: claim } })).toBeUndefined()
    })
  }
})

describe('cannot be saved, with the place and what to do:', () => {
  const rows: [source: string, place: string, message: RegExp][] = [
    ['subject ==', 'line 1, column 11', /Unexpected token/],
    ['subject ==\n  &&', 'line 2, column 3', /Unexpected token/],
    ['"𐀀" == subjekt', 'line 1, column 8', /subjekt.*subject, audience, scopes, token_type, claims/],
    ['subject', 'line 1, column 1', /true or false, not string/],
    ['claims.admin', 'line 1, column 1', /compare it, as in claims\.admin == true/],
    ['subject.matches("a.*")', 'line 1, column 1', /matches\(\) is not available \(use startsWith/],
    ['matches(subject, "a")', 'line 1, column 1', /matches\(\) is not available/],
    ['scopes.exists(s, audience.exists(a, a == s))', 'line 1, column 18', /inside another macro/],
    ['scopes.map(s, [s].filter(t, true)) == []', 'line 1, column 15', /inside another macro/],
    ['scopes.exists(subject, true)', 'line 1, column 15', /variable of conditions already/],
    ['scopes.exists(1, true)', 'line 1, column 1', /./],
    ['has(subject.x)', 'line 1, column 1', /has\(claims\.name\)/],
    ['has(claims)', 'line 1, column 1', /./],
    ['scopes.exists(s, has(s.x))', 'line 1, column 18', /has\(claims\.name\)/],
    ['claims[1] == 2', 'line 1, column 8', /Claim names must be strings/],
    ['9223372036854775808 > 0', 'line 1, column 1', /64 bits/],
    ['--9223372036854775808 > 0', 'line 1, column 1', /64 bits/],
    ['-(-9223372036854775808) > 0', 'line 1, column 1', /64 bits/],
    ['{"a": 1, "b": 2, "a": 3}.a == 3', 'line 1, column 18', /has this key twice/],
    ['int(1, 2) == 1', 'line 1, column 1', /'int\(int, int\)'/],
    ['subject == "" ||\n  int(true) == 1', 'line 2, column 3', /'int\(bool\)'/],
    [`1${'/1'.repeat(900)} == 1`, 'line 1, column 1', /Exceeded maxDepth/],
    [`${'-'.repeat(900)}size(subject) == 1`, 'line 1, column 1', /Exceeded maxDepth/],
    ['own_int("1") == 1', 'line 1, column 1', /not available/],
    ['b"x" == b"x"', 'line 1, column 1', /Bytes/],
    ['1u == 1u', 'line 1, column 1', /unsigned/],
    ['subject.startsWith(1)', 'line 1, column 1', /startsWith/],
    ['subject == 1', 'line 1, column 1', /string == int/],
    ['int == int', 'line 1, column 1', /Unknown variable int/],
    ['cel.bind(x, 1, x == 1)', 'line 1, column 1', /bind\(\) is not available/],
    ['timestamp("2026-01-01T00:00:00Z") == timestamp("2026-01-01T00:00:00Z")', 'line 1, column 1', /not available/],
    ['subject.lowerAscii() == "a"', 'line 1, column 1', /not available/],
    ['claims.?a == 1', 'line 1, column 8', /./],
    [`subject == "${'x'.repeat(2_000)}"`, 'line 1, column 1', /2000 characters/],
    ['claims.a.exists(x, x.contains(claims.b))', 'line 1, column 1', /too long on a large token/],
    [`["ab"]${'.map(a, a + a)'.repeat(24)}.size() == 1`, 'line 1, column 1', /too long on a large token/],
    [Array(12).fill('claims.a.exists(x, x.y == 1)').join(' || '), 'line 1, column 1', /too long on a large token/],
  ]
  for (const [source, place, message] of rows) {
    test(source.slice(0, 70), () => {
      const fault = compileCondition(source)
      if (!isConditionFault(fault)) throw new Error('It was accepted')
      const told = describeConditionFault(source, fault)
      expect(told).toStartWith(place)
      expect(told).toMatch(message)
    })
  }

  test('a caret stands below the place, counted in characters', () => {
    const source = 'true &&\n"𐀀é" == subjekt'
    const fault = compileCondition(source)
    if (!isConditionFault(fault)) throw new Error('It was accepted')
    expect(describeConditionFault(source, fault).split('\n').slice(1)).toEqual([
      '  "𐀀é" == subjekt',
      '          ^^^^^^^',
    ])
  })
})

/** Tokens at the bounds of what a condition is let see. */
const worst: SubjectToken[] = [
  { list: Array(256).fill('a'.repeat(40)), other: Array(256).fill('b'.repeat(4)), text: 'a'.repeat(500) },
  { list: Array(256).fill(1), other: Array(256).fill({ x: 'a' }), text: `${'a'.repeat(1_999)}b` },
  { list: Object.fromEntries(Array.from({ length: 256 }, (_, at) => [`name-${at}`, at])), text: 'a'.repeat(4_096) },
].map((claims) => ({
  ...token,
  subject: 'a'.repeat(512),
  audience: Array(20).fill('a'.repeat(500)),
  payload: { ...claims, scopes: Array(16).fill('a'.repeat(512)), token_type: 'a'.repeat(1_000) },
}))

const { condition: anyCondition } = fc.letrec<Record<'condition' | 'text' | 'list', string>>((tie) => ({
  text: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('subject', 'token_type', 'claims.text', '"ab"', 'claims.list[0]', 'x', 'x.y'),
    fc.tuple(tie('text'), tie('text')).map(([one, other]) => `(${one} + ${other})`),
    tie('text').map((text) => `string(${text})`),
  ),
  list: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('claims.list', 'claims.other', 'scopes', 'audience', '["a", "b"]'),
    fc.tuple(tie('list'), tie('text')).map(([list, text]) => `${list}.map(x, ${text})`),
    fc.tuple(tie('list'), tie('condition')).map(([list, condition]) => `${list}.filter(x, ${condition})`),
    fc.tuple(tie('list'), tie('list')).map(([one, other]) => `(${one} + ${other})`),
  ),
  condition: fc.oneof(
    { maxDepth: 4 },
    fc.tuple(tie('text'), fc.constantFrom('==', '<', 'in'), tie('text')).map((parts) => `(${parts.join(' ')})`),
    fc
      .tuple(tie('text'), fc.constantFrom('contains', 'startsWith', 'endsWith'), tie('text'))
      .map(([one, name, other]) => `${one}.${name}(${other})`),
    fc.tuple(tie('list'), tie('list')).map(([one, other]) => `${one} == ${other}`),
    fc
      .tuple(tie('list'), fc.constantFrom('all', 'exists', 'exists_one'), tie('condition'))
      .map(([list, name, condition]) => `${list}.${name}(x, ${condition})`),
    fc.tuple(tie('condition'), fc.constantFrom('&&', '||'), tie('condition')).map((parts) => `(${parts.join(' ')})`),
    tie('condition').map((condition) => `!${condition}`),
  ),
}))

describe('for any text', () => {
  test('compiling answers with a condition or a fault inside the text', () => {
    const texts = fc.oneof(fc.string({ unit: 'binary', maxLength: 60 }), anyCondition)
    fc.assert(
      fc.property(texts, (source) => {
        const fault = compileCondition(source)
        if (!isConditionFault(fault)) return
        expect(fault.start).toBeGreaterThanOrEqual(0)
        expect(fault.start).toBeLessThanOrEqual(source.length)
        expect(describeConditionFault(source, fault)).toMatch(/^line \d+, column \d+: ./)
      }),
      { numRuns: 2_000 },
    )
  })

  test('an accepted condition takes less than 50 ms of the processor on the largest tokens', () => {
    let accepted = 0
    let slowest = { milliseconds: 0, source: '' }
    fc.assert(
      fc.property(anyCondition, (source) => {
        const condition = compileCondition(source)
        if (isConditionFault(condition)) return
        accepted++
        for (const each of worst) {
          const milliseconds = cpuMilliseconds(() => checkCondition(condition, each))
          if (milliseconds > slowest.milliseconds) slowest = { milliseconds, source }
        }
      }),
      { numRuns: 3_000 },
    )
    expect(accepted).toBeGreaterThan(100)
    expect(slowest).toSatisfy(({ milliseconds }) => milliseconds < 50)
    expect(conditionNanosecondsMax).toBeLessThan(15_000_000)
  })
})
