// The claims that a condition is known to read decide what the audit records and what a back-test can judge.
import { describe, expect, test } from 'bun:test'
import { claimsReadBy } from '../../../src/federation/condition/claims-read.ts'
import { compileCondition, isConditionFault } from '../../../src/federation/condition/compile.ts'

function readBy(source: string) {
  const condition = compileCondition(source)
  if (isConditionFault(condition)) throw new Error(condition.message)
  const { names, readsAll } = claimsReadBy(condition.ast)
  return { names: [...names].toSorted(), readsAll }
}

describe('a condition reads', () => {
  test.each([
    ['no claims', 'subject == "a" && "x" in audience', []],
    ['members, by either spelling', 'claims.a == "1" && claims["b/c"] == claims . d', ['a', 'b/c', 'd']],
    ['what it asks for', 'has(claims.a) || "b" in claims', ['a', 'b']],
    ['the outermost claim of a nested one', 'claims.a.b.c == "x" && has(claims.d.e)', ['a', 'd']],
    ['what a macro goes through', 'claims.a.exists(x, x == "claims.c") && claims.b == "y"', ['a', 'b']],
    ['both branches', 'claims.a == true ? claims.b == "x" : [claims.c] == ["y"]', ['a', 'b', 'c']],
  ])('%s', (_, source, names) => {
    expect(readBy(source)).toEqual({ names, readsAll: false })
  })

  test.each(['size(claims) > 3', 'claims.exists(name, name == "a")', 'claims[subject] == "x"', 'subject in claims'])(
    'claims that it does not name: %s',
    (source) => expect(readBy(source).readsAll).toBe(true),
  )
})
