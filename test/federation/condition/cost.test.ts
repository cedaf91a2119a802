// The bound on a condition's time (reference: Condition): no accepted condition takes long on any token, however it hides what it does, and
// explaining one takes hardly longer than evaluating it.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  type Condition,
  checkCondition,
  compileCondition,
  isConditionFault,
} from '../../../src/federation/condition/compile.ts'
import { explainParts } from '../../../src/federation/condition/explanation.ts'
import type { SubjectToken } from '../../../src/federation/subject-token/claims.ts'
import { conditionNanosecondsMax, explainedNanosecondsMax } from '../../../src/limits.ts'

const a = (count: number, letter = 'a') => letter.repeat(count)
const zeros = Array(256).fill(0)
/** Each fits into the largest subject token. The hash of `b` and a backtick is that of two `a`s: a search compares at every place. */
const claims: Record<string, unknown>[] = [
  { a: a(4_096), c: `${a(1_023)}b\`${a(1_023)}`, l: zeros },
  { a: a(2_048, 'Ā'), c: `${a(511, 'Ā')}\u0101\u00ff${a(511, 'Ā')}`, l: zeros },
  { a: Array(7).fill(zeros), c: Array(7).fill(zeros), l: Array(7).fill(zeros) },
  { a: a(1_000), c: Object.fromEntries(zeros.map((_, at) => [`name-${at}`, at])), l: Array(256).fill('a'.repeat(20)) },
  { a: a(2_000, '\ud83d\ude00'), c: a(2_000, '9'), l: Array(256).fill({ k: 'a' }) },
]
const tokens: SubjectToken[] = claims.map((payload) => ({
  algorithm: 'ES256',
  kid: undefined,
  issuer: 'i',
  subject: a(512),
  audience: Array(4).fill(a(512)),
  payload: { ...payload, scopes: Array(4).fill(a(512)) },
}))

const explain = (condition: Condition, token: SubjectToken) => [...explainParts(condition, token)]

function accepted(source: string): Condition | undefined {
  const condition = compileCondition(source)
  return isConditionFault(condition) ? undefined : condition
}

/** Time of the processor, the quickest of three: a pause of the collector or of the machine is not held against a condition. */
function milliseconds(run: () => unknown, patience = 50): number {
  let best = Number.POSITIVE_INFINITY
  for (let time = 0; time < 3 && best > patience / 10; time++) {
    const before = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / 1_000)
  }
  return best
}

const doubled = (text: string, times: number) => `[string(${text})]${'.map(s, s + s)'.repeat(times)}[0]`
const aside = '[claims.l.map(i, claims), '
const aliased = '{"a": claims, "b": claims, "c": claims}'

describe('is refused, though the costly value stands beside a heavier one:', () => {
  const rows = [
    `claims.l.all(i, ![${aliased}, claims.a][1].contains([${aliased}, claims.c][1]))`,
    `!${aside}${doubled('claims.a', 5)}][1].contains(${aside}[${doubled('claims.a', 3)} + string(claims.c)][0]][1])`,
    `!${aside}${doubled('claims.a', 2)}][1].contains(${aside}claims.c][1])`,
    `!(claims.t == 1 ? [[claims], 1][0] : ${doubled('claims.a', 3)}).contains((claims.t == 1 ? [[claims], 1][0] : ${doubled('claims.c', 3)}))`,
    `claims.l.all(i, !{"k": claims.l, "m": ${aliased}, "n": claims.a}.n.contains({"k": ${aliased}, "n": claims.c}.n))`,
    `claims.l.map(i, claims.l).map(x, [claims.l, claims.l]).all(x, x == [claims.a, claims.a])`,
    `claims.l.map(i, claims) == claims.l.map(i, claims.a)`,
    `[[1, "a"]]${'.map(x, x + x)'.repeat(10)}[0].all(x, x.startsWith("a") || x.startsWith("a") || x.startsWith("a"))`,
    `[[true, 1]]${'.map(x, x + x)'.repeat(11)}[0].all(x, x)`,
    'claims.t == 1 ? true : claims.l.all(i, !claims.a.contains(claims.c))',
    'claims.t == 1 ? claims.l.all(i, !claims.a.contains(claims.c)) : true',
  ]
  for (const source of rows)
    test(source.slice(0, 90), () => {
      expect(compileCondition(source)).toMatchObject({ message: 'It could take too long on a large token' })
    })
})

describe('stays quick:', () => {
  const rows = [
    ['errors far down the source', `claims.l.all(i,${' '.repeat(1_900)}claims.zz || claims.zz || claims.zz)`],
    ['errors after a long text', `"${a(1_900)}" != subject && claims.l.all(i, claims.zz || claims.zz || claims.zz)`],
    ['errors deep in brackets', `claims.l.all(i, ${'!'.repeat(20)}(claims.zz || claims.zz))`],
    ['a large list as an index', `claims.l.map(i, claims.a).map(x, [claims.l, claims.l]).all(x, claims[x] == 1)`],
    ['counting code points', `claims.l.all(i, size(claims.a) > 0 && size(claims.a) > 1)`],
  ] as const
  for (const [name, source] of rows)
    test(name, () => {
      const condition = accepted(source)
      if (condition === undefined) throw new Error('It was refused')
      for (const token of tokens) expect(milliseconds(() => checkCondition(condition, token))).toBeLessThan(50)
    })

  test('an error carries no source, which the engine would write out for each one', () => {
    const condition = accepted('claims.zz == 1')
    expect(() => condition?.evaluate({ ...tokens[0], scopes: [], token_type: '', claims: new Map() } as never)).toThrow(
      /^No such key: zz$/,
    )
  })
})

/** Values that hide what they cost: beside heavier ones, named many times, doubled, in a list, a map or a branch. */
type Grammar = fc.LetrecValue<Record<'value' | 'list' | 'condition', string>>
function grammar(hasMacros: boolean): Grammar {
  return fc.letrec((tie) => {
    const value = tie('value')
    const list = tie('list')
    const { condition: body, value: inner } = hasMacros ? grammar(false) : { condition: tie('condition'), value }
    const macros = hasMacros
      ? {
          values: [fc.tuple(value, fc.nat({ max: 6 })).map(([one, times]) => doubled(one, times))],
          lists: [
            fc.tuple(list, inner).map(([one, other]) => `${one}.map(x, ${other})`),
            fc.tuple(list, body).map(([one, other]) => `${one}.filter(x, ${other})`),
            fc.tuple(list, fc.nat({ max: 6 })).map(([one, times]) => `[${one}]${'.map(s, s + s)'.repeat(times)}[0]`),
            fc.tuple(list, fc.nat({ max: 5 })).map(([one, times]) => `[${one}]${'.map(s, [s, s])'.repeat(times)}`),
          ],
          conditions: [
            fc
              .tuple(list, fc.constantFrom('all', 'exists', 'exists_one'), body)
              .map(([one, name, other]) => `${one}.${name}(x, ${other})`),
          ],
        }
      : { values: [fc.constantFrom('x', 'x.k', 'claims[x]')], lists: [fc.constant('x')], conditions: [] }
    return {
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom('claims.a', 'claims.c', 'claims.l', 'claims', 'subject', 'claims.zz', '"a"', '1'),
        ...macros.values,
        list,
        fc.tuple(value, value).map(([one, other]) => `(${one} + ${other})`),
        value.map((one) => `string(${one})`),
        fc.tuple(value, value, fc.nat({ max: 1 })).map(([one, other, at]) => `[${one}, ${other}][${at}]`),
        fc.tuple(value, value).map(([one, other]) => `{"k": ${one}, "m": ${other}}.k`),
        fc.tuple(value, value).map(([one, other]) => `(claims.t == 1 ? [${one}, 1][0] : [${other}, 1][0])`),
        fc.tuple(list, value).map(([one, other]) => `${one}[${other}]`),
      ),
      list: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom('claims.l', 'claims.c', 'scopes', 'claims'),
        ...macros.lists,
        fc.array(value, { minLength: 1, maxLength: 4 }).map((all) => `[${all.join(', ')}]`),
        fc.tuple(list, list).map(([one, other]) => `(${one} + ${other})`),
      ),
      condition: fc.oneof(
        { maxDepth: 3 },
        ...macros.conditions,
        ...macros.conditions,
        fc.tuple(value, fc.constantFrom('==', '<', 'in', '!='), value).map((parts) => `(${parts.join(' ')})`),
        fc
          .tuple(value, fc.constantFrom('contains', 'startsWith', 'endsWith'), value)
          .map(([one, name, other]) => `!${one}.${name}(${other})`),
        value.map((one) => `(size(${one}) > 0 || int(${one}) > 0 || double(${one}) > 0.0)`),
        fc
          .tuple(tie('condition'), fc.constantFrom('&&', '||'), tie('condition'))
          .map((parts) => `(${parts.join(' ')})`),
      ),
    }
  })
}

describe('for any condition that is accepted', () => {
  test('evaluating and explaining it on the largest tokens come to an end well within 50 and 100 ms', () => {
    let count = 0
    let slowest = { milliseconds: 0, source: '' }
    let slowestToExplain = { milliseconds: 0, source: '' }
    fc.assert(
      fc.property(grammar(true).condition, (source) => {
        const condition = accepted(source)
        if (condition === undefined) return
        count++
        for (const token of tokens) {
          const evaluating = milliseconds(() => checkCondition(condition, token))
          if (evaluating > slowest.milliseconds) slowest = { milliseconds: evaluating, source }
        }
        const explaining = Math.max(...tokens.slice(0, 2).map((token) => milliseconds(() => explain(condition, token))))
        if (explaining > slowestToExplain.milliseconds) slowestToExplain = { milliseconds: explaining, source }
      }),
      { numRuns: 2_000 },
    )
    expect(count).toBeGreaterThan(100)
    expect(slowest).toSatisfy((each) => each.milliseconds < 50)
    expect(slowestToExplain).toSatisfy((each) => each.milliseconds < 100)
  })
})

describe('explaining a condition', () => {
  const [token] = tokens
  if (token === undefined) throw new Error('There is no token')

  test('leaves out parts that together could take far longer than the condition, never the whole', () => {
    const core = '(claims.l.all(i, claims.zz || claims.zz))'
    const source = `${'!'.repeat(40)}${core}`
    const condition = accepted(source)
    if (condition === undefined) throw new Error('It was refused')
    const parts = explain(condition, token)
    expect(parts.length).toBeGreaterThan(2)
    expect(parts.length).toBeLessThan(10)
    expect(parts.at(-1)?.source).toBe(source)
    expect(explainedNanosecondsMax).toBeLessThanOrEqual(3 * conditionNanosecondsMax)
    expect(milliseconds(() => explain(condition, token))).toBeLessThan(100)
  })

  test('takes no longer for hundreds of bracketed operands', () => {
    const condition = accepted(`${'('.repeat(40)}1${')'.repeat(40)}${' + (1)'.repeat(310)} == 1`)
    if (condition === undefined) throw new Error('It was refused')
    expect(milliseconds(() => explain(condition, token))).toBeLessThan(150)
  })

  test('writes a value out no farther than it is shown', () => {
    const condition = accepted(`[claims]${'.map(x, [x, x])'.repeat(40)}.size() == 1`)
    if (condition === undefined) throw new Error('It was refused')
    expect(milliseconds(() => explain(condition, token))).toBeLessThan(100)
  })
})
