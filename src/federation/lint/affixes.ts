// Texts that a condition joins from constants and one claim, and what comparing such a text asks of the claim.
import type { ASTNode } from '@marcbachmann/cel-js'
import { among, type ClaimName, never, only, type Paths, type TextOperator } from './atom.ts'
import { claimOf, constantOf, resolve, type Scope } from './constants.ts'
import { allOf, anyOf } from './paths.ts'

/** A claim between two constant texts. */
export type Affixed = { claim: ClaimName; before: string; after: string }

/** A way in which the whole text can pass a test: the claim is a text, or begins or ends with it, or contains it. */
type Way = [operator: TextOperator | 'is', text: string]

/** More ways are not followed. */
const waysMax = 16

/** Returns the parts of a joined text, or undefined if it is joined from anything else. */
export function affixedOf(read: ASTNode, within: Scope): Affixed | undefined {
  const { node, scope } = resolve({ node: read, scope: within })
  if (node.op !== '+') {
    const claim = claimOf(node, scope)
    return claim === undefined ? undefined : { claim, before: '', after: '' }
  }
  const [left, right] = node.args
  const [start, end] = [constantOf(left, scope), constantOf(right, scope)]
  if (typeof start === 'string') {
    const inner = affixedOf(right, scope)
    return inner === undefined ? undefined : { ...inner, before: start + inner.before }
  }
  const inner = typeof end === 'string' ? affixedOf(left, scope) : undefined
  return inner === undefined ? undefined : { ...inner, after: inner.after + end }
}

/** What it asks of the claim that the whole text is `text`, or is not. */
export function equalsAffixed({ claim, before, after }: Affixed, text: string, equal: boolean): Paths {
  const fits = text.length >= before.length + after.length && text.startsWith(before) && text.endsWith(after)
  return compare(claim, fits ? [['is', text.slice(before.length, text.length - after.length)]] : [], equal)
}

/** What it asks of the claim that the whole text passes a test, or does not. Undefined: there are too many ways. */
export function testsAffixed(
  affixed: Affixed,
  operator: TextOperator,
  text: string,
  truth: boolean,
): Paths | undefined {
  const ways = waysTo(affixed, operator, text)
  return ways.length > waysMax ? undefined : compare(affixed.claim, ways, truth)
}

function waysTo({ before, after }: Affixed, operator: TextOperator, text: string): Way[] {
  switch (operator) {
    case 'startsWith': {
      if (!text.startsWith(before)) return before.startsWith(text) ? [['startsWith', '']] : []
      const rest = text.slice(before.length)
      return [['startsWith', rest], ...overlaps(after, rest).map((end): Way => ['is', rest.slice(0, -end)])]
    }
    case 'endsWith': {
      if (!text.endsWith(after)) return after.endsWith(text) ? [['startsWith', '']] : []
      const rest = text.slice(0, text.length - after.length)
      return [['endsWith', rest], ...underlaps(before, rest).map((start): Way => ['is', rest.slice(start)])]
    }
    case 'contains': {
      if (before.includes(text) || after.includes(text)) return [['startsWith', '']]
      const [starts, ends] = [underlaps(before, text), overlaps(after, text)]
      const both = starts.flatMap((start) => ends.map((end) => [start, end] as const))
      return [
        ['contains', text],
        ...starts.map((start): Way => ['startsWith', text.slice(start)]),
        ...ends.map((end): Way => ['endsWith', text.slice(0, -end)]),
        ...both
          .filter(([start, end]) => start + end <= text.length)
          .map(([start, end]): Way => ['is', text.slice(start, text.length - end)]),
      ]
    }
  }
}

/** How many last characters of a text can be the first ones of what follows the claim. */
function overlaps(after: string, text: string): number[] {
  return lengthsOf(after, text).filter((length) => after.startsWith(text.slice(-length)))
}

/** How many first characters of a text can be the last ones of what precedes the claim. */
function underlaps(before: string, text: string): number[] {
  return lengthsOf(before, text).filter((length) => before.endsWith(text.slice(0, length)))
}

function lengthsOf(affix: string, text: string): number[] {
  return Array.from({ length: Math.min(affix.length, text.length) }, (_, index) => index + 1)
}

function compare(claim: ClaimName, ways: readonly Way[], truth: boolean): Paths {
  const isPresent = only({ kind: 'present', claim, negated: false })
  // Every text starts with nothing.
  if (ways.some(([operator, text]) => operator !== 'is' && text === '')) return truth ? isPresent : never
  const exact = ways.flatMap(([operator, text]) => (operator === 'is' ? [text] : []))
  const tests = ways.flatMap(([operator, text]) =>
    operator === 'is' ? [] : [only({ kind: 'text', claim, negated: !truth, operator, text })],
  )
  const all = exact.length === 0 ? tests : [...tests, only(among(claim, exact, !truth))]
  if (truth) return anyOf(all)
  return all.length === 0 ? isPresent : allOf(all)
}
