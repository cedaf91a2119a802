// The official CEL conformance suite against conditions: a case that uses only what a condition may use gives the official answer, or
// stands below with the reason why it does not.
import { expect, test } from 'bun:test'
import { getConformanceSuite, type IncrementalTestSuite } from '@bufbuild/cel-spec/testdata/tests.js'
import { parse } from '@marcbachmann/cel-js'
import { checkCondition, compileCondition, isConditionFault } from '../../../src/federation/condition/compile.ts'
import { findForbidden } from '../../../src/federation/condition/permitted.ts'
import type { SubjectToken } from '../../../src/federation/subject-token/claims.ts'

const differences: Record<string, string> = {
  '/macros/all/list_empty':
    'a macro over the literal [] is refused at save, which no policy needs: the error costs nothing but the refusal it is',
}
const token: SubjectToken = { algorithm: 'ES256', kid: undefined, issuer: 'i', subject: 's', audience: [], payload: {} }

type Case = { name: string; source: string; expected: 'true' | 'error' }

/** Cases without variables, as conditions: the expression compared with the official value, or only evaluated where an error is due. */
function casesOf(suite: IncrementalTestSuite, path: string): Case[] {
  const own = suite.tests.flatMap(({ original }): Case[] => {
    const { expr, bindings, typeEnv, container, checkOnly, disableCheck, resultMatcher: result } = original
    if (Object.keys(bindings).length > 0 || typeEnv.length > 0 || container !== '' || checkOnly || disableCheck)
      return []
    const name = `${path}/${original.name}`
    if (result.case === 'evalError') return [{ name, source: `[${expr}] == []`, expected: 'error' }]
    const value =
      result.case === 'typedResult' ? result.value.result : result.case === 'value' ? result.value : undefined
    const literal = result.case === undefined ? 'true' : literalOf(value)
    return literal === undefined ? [] : [{ name, source: `(${expr}) == ${literal}`, expected: 'true' }]
  })
  return [...own, ...suite.suites.flatMap((inner) => casesOf(inner, `${path}/${inner.name}`))]
}

type CelValue = { kind: { case?: string | undefined; value?: unknown } }

function literalOf(value: CelValue | undefined): string | undefined {
  const { case: kind, value: given } = value?.kind ?? {}
  if (kind === 'boolValue' || kind === 'int64Value') return String(given)
  if (kind === 'doubleValue') return Number.isFinite(given) ? doubleOf(given as number) : undefined
  if (kind === 'stringValue') return JSON.stringify(given)
  if (kind === 'nullValue') return 'null'
  if (kind === 'listValue') return joined((given as { values: CelValue[] }).values.map(literalOf), '[]')
  if (kind === 'mapValue') {
    const { entries } = given as { entries: { key?: CelValue; value?: CelValue }[] }
    const pairs = entries.map(({ key, value }) => [literalOf(key), literalOf(value)])
    return joined(
      pairs.map((pair) => (pair.includes(undefined) ? undefined : pair.join(': '))),
      '{}',
    )
  }
  return undefined
}

const joined = (parts: (string | undefined)[], brackets: string) =>
  parts.includes(undefined) ? undefined : `${brackets[0]}${parts.join(', ')}${brackets[1]}`

function doubleOf(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value)
  return /[.e]/.test(text) ? text : `${text}.0`
}

/** Whether a condition may use what the case uses. */
function isInside({ source }: Case): boolean {
  try {
    return findForbidden(parse(source).ast) === undefined
  } catch {
    return false
  }
}

function answer({ source }: Case): string {
  const condition = compileCondition(source)
  if (isConditionFault(condition)) return 'error'
  const refusal = checkCondition(condition, token)
  return refusal === undefined ? 'true' : refusal.refused === 'condition_error' ? 'error' : 'false'
}

test('what a condition may use means what the official suite says', () => {
  const inside = casesOf(getConformanceSuite(), '').filter(isInside)
  expect(inside.length).toBeGreaterThan(400)
  const wrong = inside.filter((each) => answer(each) !== each.expected)
  expect(wrong.map(({ name }) => name).toSorted()).toEqual(Object.keys(differences).toSorted())
})
