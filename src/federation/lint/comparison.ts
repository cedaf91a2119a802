// Tests of one claim, or of what a condition makes of it, as paths.
import type { ASTNode } from '@marcbachmann/cel-js'
import { affixedOf, equalsAffixed, equalsJoined, testsAffixed } from './affixes.ts'
import {
  always,
  among,
  holdsText,
  never,
  type OrderOperator,
  only,
  type Paths,
  type Scalar,
  type TextOperator,
} from './atom.ts'
import { claimOf, constantOf, type Expression, resolve, type Scope } from './constants.ts'
import { convertedOf, textsOf } from './forms.ts'
import { allOf } from './paths.ts'

const mirrored: Record<OrderOperator, OrderOperator> = { '<': '>', '<=': '>=', '>': '<', '>=': '<=' }

/** Compares one claim, or what a condition makes of it, with a constant. */
export function translateComparison({ node, scope }: Expression, constant: Scalar, equal: boolean): Paths | undefined {
  const claim = claimOf(node, scope)
  if (claim !== undefined) return only(among(claim, [constant], !equal))
  const converted = convertedOf(node, scope)
  if (converted?.to === 'text' && typeof constant === 'string')
    return only(among(converted.claim, textsOf(constant), !equal))
  if (converted?.to === 'number' && typeof constant === 'number') {
    // double() makes the same number of many long ids.
    if (!Number.isSafeInteger(constant)) return undefined
    const test = among(converted.claim, [constant, String(constant)], !equal)
    return only({ kind: 'converted', ...converted, test })
  }
  const affixed = typeof constant === 'string' ? affixedOf(node, scope) : undefined
  if (affixed !== undefined) return equalsAffixed(affixed, String(constant), equal)
  const joined = equal && typeof constant === 'string' ? equalsJoined(node, scope, constant) : undefined
  return joined === undefined ? undefined : allOf([joined, rest(node, scope)])
}

export function translateOrder(
  [left, right]: [ASTNode, ASTNode],
  operator: OrderOperator,
  scope: Scope,
): Paths | undefined {
  const [claim, limit] = [claimOf(left, scope), constantOf(right, scope)]
  if (claim !== undefined && typeof limit === 'number') return only({ kind: 'order', claim, operator, value: limit })
  const [least, other] = [constantOf(left, scope), claimOf(right, scope)]
  if (other === undefined || typeof least !== 'number') return undefined
  return only({ kind: 'order', claim: other, operator: mirrored[operator], value: least })
}

export function translateText(node: ASTNode & { op: 'rcall' }, truth: boolean, scope: Scope): Paths | undefined {
  const [name, receiver, [given]] = node.args
  if (given === undefined || !['startsWith', 'endsWith', 'contains'].includes(name)) return undefined
  const operator = name as TextOperator
  const text = constantOf(given, scope)
  if (typeof text !== 'string') return truth ? translatePartly(receiver, operator, given, scope) : undefined
  const known = constantOf(receiver, scope)
  if (typeof known === 'string') return holdsText(known, operator, text) === truth ? always : never
  const converted = convertedOf(receiver, scope)
  if (converted?.to === 'text' && text !== '') {
    const test = { kind: 'text', claim: converted.claim, negated: !truth, operator, text } as const
    return only({ kind: 'converted', ...converted, test })
  }
  const affixed = affixedOf(receiver, scope)
  return affixed === undefined ? undefined : testsAffixed(affixed, operator, text, truth)
}

/** A claim that begins with a joined text begins with its first constant. The rest is not followed. */
function translatePartly(receiver: ASTNode, operator: TextOperator, given: ASTNode, scope: Scope): Paths | undefined {
  const claim = claimOf(receiver, scope)
  const { start, end } = endsOf(given, scope)
  const text = operator === 'startsWith' ? start : operator === 'endsWith' ? end : start || end
  if (claim === undefined || text === '') return undefined
  return allOf([only({ kind: 'text', claim, negated: false, operator, text }), rest(given, scope)])
}

/** A claim that equals a joined text begins and ends like it. The rest is not followed. */
export function translatePartlyEqual(one: Expression, other: Expression): Paths | undefined {
  const claim = claimOf(one.node, one.scope)
  if (claim === undefined) return undefined
  const { start, end } = endsOf(other.node, other.scope)
  const parts = [
    ...(start === '' ? [] : [{ operator: 'startsWith', text: start } as const]),
    ...(end === '' ? [] : [{ operator: 'endsWith', text: end } as const]),
  ]
  if (parts.length === 0) return undefined
  const asked = parts.map((part) => only({ kind: 'text', claim, negated: false, ...part }))
  return allOf([...asked, rest(other.node, other.scope)])
}

function rest({ start, end }: ASTNode, { source }: Scope): Paths {
  return only({ kind: 'opaque', source: source.slice(start, end), negated: false })
}

/** The constants with which a joined text begins and ends. */
function endsOf(read: ASTNode, within: Scope): { start: string; end: string } {
  const { node, scope } = resolve({ node: read, scope: within })
  const text = constantOf(node, scope)
  if (typeof text === 'string') return { start: text, end: text }
  if (node.op !== '+') return { start: '', end: '' }
  const [left, right] = node.args
  const [before, after] = [constantOf(left, scope), constantOf(right, scope)]
  return {
    start: typeof before === 'string' ? before + endsOf(right, scope).start : endsOf(left, scope).start,
    end: typeof after === 'string' ? endsOf(left, scope).end + after : endsOf(right, scope).end,
  }
}
