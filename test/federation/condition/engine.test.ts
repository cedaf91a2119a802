// What the engine alone would take more leniently than CEL, and how parts of a condition are explained: always in the admin's own text.
import { describe, expect, test } from 'bun:test'
import { checkCondition } from '../../../src/federation/condition/compile.ts'
import { explainParts } from '../../../src/federation/condition/explanation.ts'
import { explainedCharactersMax } from '../../../src/limits.ts'
import { compiled, conditionToken } from '../../support/condition.ts'

const more = { nothing: {}, huge: 1e308, blank: '', long: 'x'.repeat(4_000) }
const token = { ...conditionToken(more), subject: 'w', audience: [] }
const judge = (source: string) => checkCondition(compiled(source), token)

describe('is true:', () => {
  const rows = [
    'size("a𐀀b𐀀") == 4 && "𐀀".size() == 1 && claims.groups.size() == 2 && size(claims.nested) == 1',
    'int("-042") == -42 && int("-0000000000000000000000000") == 0 && int("+9223372036854775807") > 0 && int("-9223372036854775808") < 0 && int(-1.9) == -1',
    'double("-.5e1") == -5.0 && double("+7.") == 7.0 && double("-Infinity") < 0.0 && double("+inf") > 0.0',
    'double("NaN") != double("nan")',
    'int("") == 0 || claims.yes == true',
    'claims.yes == true || int(claims.yes) == 0',
    '!(false && double("0x10") == 16.0)',
    '-claims.iat == -1700000000 && -int(claims.iat) < 0 && claims.iat / 2.0 == 850000000.0 && 7 / -2 == -3',
    '2 - (3 - 4) == 3 && 2 * (3 + 4) == 14 && 12 / (6 / 3) == 6 && -(1 - 2) == 1 && !(!(true || false) && false)',
    '(claims.iat > 0 ? 1 : 2) == 1 && (true ? false : true) == false && [1, 2][(1)] == 2 && {"a": [1]}["a"][0] == 1',
    '{"constructor": 1}["constructor"] == 1 && "a" in {"a": null} && !("b" in {"a": 1}) && {1: "x"}[1] == "x"',
    '!(claims.numbers[0] in {"1": true}) && !(claims.empty in {"": true})',
    'claims.nested == {"a": {"b": "x"}} && {} == claims.nothing && {"a": 1}.exists(k, claims.nested[k].b == "x")',
    'claims.groups.exists(g, g in {"team-a": true}) // the rest is a comment',
    // As in cel-go: what is no map has no member.
    '!has(claims.environment.suspended)',
  ]
  for (const source of rows) test(source, () => expect(judge(source)).toBeUndefined())
})

describe('is an error, as in CEL:', () => {
  const rows: [source: string, detail: RegExp][] = [
    ['int(claims.blank) == 0', /^int\(\) cannot convert/],
    ['int("0b11") == 3', /^int\(\) cannot convert/],
    ['int("0x10") == 16', /^int\(\) cannot convert/],
    ['int(" 1") == 1', /^int\(\) cannot convert/],
    ['int("1.0") == 1', /^int\(\) cannot convert/],
    ['int("9223372036854775808") > 0', /64 bits/],
    ['int("12345678901234567890123") > 0', /64 bits/],
    ['int("-") == 0', /^int\(\) cannot convert/],
    ['int(claims.huge) > 0', /64 bits/],
    ['int(9223372036854775807.0) > 0', /64 bits/],
    ['int(double("nan")) == 0', /64 bits/],
    ['!(int(claims.blank) == 1)', /^int\(\) cannot convert/],
    ['int(claims.yes) == 1', /^found no matching overload for 'int\(bool\)'; a number/],
    ['double(claims.none) == 0.0', /^found no matching overload for 'double\(null\)'/],
    ['size(claims.iat) == 1', /^found no matching overload for 'size\(double\)'/],
    ['claims.iat.size() == 1', /^found no matching overload for 'size\(double\)'/],
    ['-claims.environment == 1', /^found no matching overload for '-\(string\)'/],
    ['double("0x10") == 16.0', /^double\(\) cannot convert/],
    ['double("") == 0.0', /^double\(\) cannot convert/],
    ['double("1e999") > 0.0', /^double\(\) cannot convert/],
    ['double("+nan") > 0.0', /^double\(\) cannot convert/],
    ['double("1_0") == 10.0', /^double\(\) cannot convert/],
    ['-int("-9223372036854775808") > 0', /64 bits/],
    ['int("-9223372036854775808") / -1 > 0', /64 bits/],
    ['claims[claims.groups] == 1', /index/],
    ['{claims.environment: 1, "production": 2}["production"] == 1', /key twice/],
    ['{claims.iat: 1} != {}', /A key must be/],
  ]
  for (const [source, detail] of rows) {
    test(source, () =>
      expect(judge(source)).toEqual({ refused: 'condition_error', detail: expect.stringMatching(detail) }),
    )
  }
})

describe('explaining a condition shows its parts in the words of its admin,', () => {
  const explained = (source: string) => [...explainParts(compiled(source), token)]

  test('with their values, smallest parts first', () => {
    expect(explained(`int( claims.iat )+1 > 0 && {'a':1}["a"] == size(claims.groups)`)).toEqual([
      { source: 'claims', value: expect.stringMatching(/^{"iat":1700000000,.+…$/) },
      { source: 'claims.iat', value: '1700000000' },
      { source: 'int( claims.iat )', value: '1700000000' },
      { source: 'int( claims.iat )+1', value: '1700000001' },
      { source: 'int( claims.iat )+1 > 0', value: 'true' },
      { source: `{'a':1}`, value: '{"a":1}' },
      { source: `{'a':1}["a"]`, value: '1' },
      { source: 'claims.groups', value: '["team-a","other"]' },
      { source: 'size(claims.groups)', value: '2' },
      { source: `{'a':1}["a"] == size(claims.groups)`, value: 'false' },
      { source: `int( claims.iat )+1 > 0 && {'a':1}["a"] == size(claims.groups)`, value: 'false' },
    ])
  })

  test('with the brackets around an operand, and with errors', () => {
    expect(explained('((subject == "") || (true && false)) == ( int("") == 0 )').slice(1)).toEqual([
      { source: 'subject == ""', value: 'false' },
      { source: 'true && false', value: 'false' },
      { source: '(subject == "") || (true && false)', value: 'false' },
      { source: 'int("")', error: 'int() cannot convert the text to a whole number' },
      { source: 'int("") == 0', error: 'int() cannot convert the text to a whole number' },
      {
        source: '((subject == "") || (true && false)) == ( int("") == 0 )',
        error: 'int() cannot convert the text to a whole number',
      },
    ])
  })
})

test('an error shows a long text as an explanation does', () => {
  const refusal = judge('claims[claims.long] == 1')
  expect(refusal?.detail?.length).toBeLessThan(explainedCharactersMax + 30)
})
