// Texts that a condition joins from constants and one claim, and what comparing such a text asks of the claim.
import type { ASTNode } from '@marcbachmann/cel-js'
import { among, type ClaimName, never, only, type Paths, type TextOperator } from './atom.ts'
import { claimOf, constantOf, type Expression, resolve, type Scope } from './constants.ts'
import { allOf, anyOf } from './paths.ts'

/** A claim between two constant texts. */
export type AffixedClaim = { claim: ClaimName; before: string; after: string }

/** A way in which the whole text can pass a test: the claim is a text, or begins or ends with it, or contains it. */
type TextComparison = [operator: TextOperator | 'is', text: string]

/** More ways are not followed. */
const waysMax = 16

/** Returns the parts of a joined text, or undefined if it is joined from anything else. */
export function affixedOf(read: ASTNode, within: Scope): AffixedClaim | undefined {
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
export function equalsAffixed({ claim, before, after }: AffixedClaim, text: string, equal: boolean): Paths {
  const fits = text.length >= before.length + after.length && text.startsWith(before) && text.endsWith(after)
  return compare(claim, fits ? [['is', text.slice(before.length, text.length - after.length)]] : [], equal)
}

/**
 * What it asks of the first and the last claim of a joined text that the whole is `text`: the text up to where the next
 * constant can follow. Undefined: nothing, or there are too many places.
 */
export function equalsJoined(node: ASTNode, scope: Scope, text: string): Paths | undefined {
  const parts = partsOf({ node, scope })
  const first = firstValues(parts, text)
  const last = firstValues(parts.map(reversed).toReversed(), backwards(text))
  const asked = [first, last && { ...last, values: last.values.map(backwards) }]
    .filter((each) => each !== undefined)
    .map(({ claim, values }) => (values.length === 0 ? never : only({ ...among(claim, values, false), piece: true })))
  return asked.length === 0 ? undefined : allOf(asked)
}

/** A constant, a claim, or a part of which nothing is known. */
type Part = { text?: string; claim?: ClaimName }

function partsOf(expression: Expression): Part[] {
  const { node, scope } = resolve(expression)
  const text = constantOf(node, scope)
  if (typeof text === 'string') return [{ text }]
  if (node.op === '+') return node.args.flatMap((each) => partsOf({ node: each, scope }))
  const claim = claimOf(node, scope)
  return [claim === undefined ? {} : { claim }]
}

function firstValues(parts: readonly Part[], whole: string): { claim: ClaimName; values: string[] } | undefined {
  const at = parts.findIndex(({ text }) => text === undefined)
  const { claim } = parts[at] ?? {}
  if (claim === undefined) return undefined
  const start = textOf(parts.slice(0, at))
  if (!whole.startsWith(start)) return { claim, values: [] }
  const following = parts.slice(at + 1)
  const end = following.findIndex(({ text }) => text === undefined)
  const next = textOf(end === -1 ? following : following.slice(0, end))
  const values: string[] = []
  for (let to = start.length; to <= whole.length; to++)
    if (whole.startsWith(next, to)) values.push(whole.slice(start.length, to))
  return values.length > waysMax ? undefined : { claim, values }
}

function textOf(parts: readonly Part[]): string {
  return parts.map(({ text = '' }) => text).join('')
}

function reversed({ text, claim }: Part): Part {
  return text === undefined ? { ...(claim === undefined ? {} : { claim }) } : { text: backwards(text) }
}

function backwards(text: string): string {
  return text.split('').toReversed().join('')
}

/** What it asks of the claim that the whole text passes a test, or does not. Undefined: there are too many ways. */
export function testsAffixed(
  affixed: AffixedClaim,
  operator: TextOperator,
  text: string,
  truth: boolean,
): Paths | undefined {
  const ways = waysTo(affixed, operator, text)
  return ways.length > waysMax ? undefined : compare(affixed.claim, ways, truth)
}

function waysTo({ before, after }: AffixedClaim, operator: TextOperator, text: string): TextComparison[] {
  switch (operator) {
    case 'startsWith': {
      if (!text.startsWith(before)) return before.startsWith(text) ? [['startsWith', '']] : []
      const rest = text.slice(before.length)
      return [['startsWith', rest], ...overlaps(after, rest).map((end): TextComparison => ['is', rest.slice(0, -end)])]
    }
    case 'endsWith': {
      if (!text.endsWith(after)) return after.endsWith(text) ? [['startsWith', '']] : []
      const rest = text.slice(0, text.length - after.length)
      return [['endsWith', rest], ...underlaps(before, rest).map((start): TextComparison => ['is', rest.slice(start)])]
    }
    case 'contains': {
      if (before.includes(text) || after.includes(text)) return [['startsWith', '']]
      const [starts, ends] = [underlaps(before, text), overlaps(after, text)]
      const both = starts.flatMap((start) => ends.map((end) => [start, end] as const))
      return [
        ['contains', text],
        ...starts.map((start): TextComparison => ['startsWith', text.slice(start)]),
        ...ends.map((end): TextComparison => ['endsWith', text.slice(0, -end)]),
        ...both
          .filter(([start, end]) => start + end <= text.length)
          .map(([start, end]): TextComparison => ['is', text.slice(start, text.length - end)]),
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

function compare(claim: ClaimName, ways: readonly TextComparison[], truth: boolean): Paths {
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
