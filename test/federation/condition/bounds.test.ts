// The bounds of a condition, each at its last good value and at the first one beyond it; and chains of macros, every link of which is judged.
import { describe, expect, test } from 'bun:test'
import { checkCondition, compileCondition, isConditionFault } from '../../../src/federation/condition/compile.ts'
import { conditionCharactersMax, conditionStringCharactersMax } from '../../../src/limits.ts'
import { compiled, conditionToken } from '../../support/condition.ts'

const faultOf = (source: string) => {
  const condition = compileCondition(source)
  return isConditionFault(condition) ? condition.message : undefined
}

describe('a chain of macros is refused for what is in its first link:', () => {
  const rows: [name: string, source: string, message: string][] = [
    ['a forbidden method', 'scopes.filter(s, s.matches("a")).exists(t, t == "b")', 'matches() is not available'],
    ['a forbidden function', 'scopes.filter(s, bytes(s) == b"").exists(t, t == "b")', 'bytes() is not available'],
    [
      'another macro',
      'scopes.filter(s, audience.exists(a, a == s)).exists(t, t == "b")',
      'exists() cannot stand inside another macro',
    ],
    ['an unknown variable', 'scopes.filter(s, s == other).exists(t, t == "b")', 'Unknown variable other'],
    ['a forbidden receiver', 'subject.split("/").filter(s, true).exists(t, t == "b")', 'split() is not available'],
    [
      'a macro two links before',
      'scopes.filter(s, audience.exists(a, a == s)).map(t, t).exists(u, u == "b")',
      'exists() cannot stand inside another macro',
    ],
  ]
  for (const [name, source, message] of rows) test(name, () => expect(faultOf(source)).toBe(message))

  test('and accepted where every link is allowed', () =>
    expect(faultOf('scopes.filter(s, s != "a").map(t, t).exists(u, u == "b")')).toBeUndefined())
})

describe('a condition may have 2,000 characters and nothing more,', () => {
  const ofLength = (characters: number, character: string) =>
    `subject != "${character.repeat(characters - 'subject != ""'.length)}"`
  for (const [name, character] of [
    ['of ASCII', 'x'],
    ['of two bytes', 'é'],
    ['outside the basic plane, which count once', '𐀀'],
  ] as const) {
    test(name, () => {
      expect(faultOf(ofLength(conditionCharactersMax, character))).toBeUndefined()
      expect(faultOf(ofLength(conditionCharactersMax + 1, character))).toBe('A condition has at most 2000 characters')
    })
  }
})

describe('a token is within the bounds of a condition up to', () => {
  const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) })
  const lists = (levels: number): unknown => (levels === 0 ? 1 : [lists(levels - 1)])
  const text = (characters: number) => 'x'.repeat(characters)
  const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`m${index}`, 0]))
  const max = conditionStringCharactersMax
  const rows: [name: string, most: unknown, more: unknown][] = [
    // The payload itself is the first of 16 levels.
    ['16 levels of objects', nested(15), nested(16)],
    ['16 levels of lists', lists(15), lists(16)],
    ['4,096 characters of a text', text(max), text(max + 1)],
    ['4,096 characters of a text in a list', [text(max)], [text(max + 1)]],
    ['4,096 characters of a name', { [text(max)]: 0 }, { [text(max + 1)]: 0 }],
    ['4,096 characters of a name further down', { a: [{ [text(max)]: 0 }] }, { a: [{ [text(max + 1)]: 0 }] }],
    ['256 items', Array(256).fill(0), Array(257).fill(0)],
    ['256 members', members(256), members(257)],
  ]
  const refusalOf = (claims: Record<string, unknown>) => {
    const { algorithm, kid, issuer, subject, audience } = conditionToken({})
    const token = { algorithm, kid, issuer, subject, audience, payload: claims }
    return checkCondition(compiled('has(claims.claim) || token_type != ""'), token)?.refused
  }
  for (const [name, most, more] of rows) {
    test(name, () => {
      expect(refusalOf({ claim: most })).toBeUndefined()
      expect(refusalOf({ claim: more })).toBe('claims_too_large')
    })
  }

  test('256 members of the payload itself, and 4,096 characters of token_type', () => {
    expect(refusalOf({ ...members(255), claim: 0 })).toBeUndefined()
    expect(refusalOf({ ...members(256), claim: 0 })).toBe('claims_too_large')
    expect(refusalOf({ token_type: text(max) })).toBeUndefined()
    expect(refusalOf({ token_type: text(max + 1) })).toBe('claims_too_large')
  })

  test('256 audiences', () => {
    const judge = (count: number) =>
      checkCondition(compiled('subject != ""'), { ...conditionToken({}), audience: Array(count).fill('a') })?.refused
    expect(judge(256)).toBeUndefined()
    expect(judge(257)).toBe('claims_too_large')
  })
})
