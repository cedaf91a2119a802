// Tests of one claim, or of what a condition makes of it, as paths.
import type { ASTNode } from '@marcbachmann/cel-js'
import { affixedOf, equalsAffixed, testsAffixed } from './affixes.ts'
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
import { claimOf, constantOf, type Expression, type Scope } from './constants.ts'
import { convertedOf, textsOf } from './forms.ts'

const mirrored: Record<OrderOperator, OrderOperator> = { '<': '>', '<=': '>=', '>': '<', '>=': '<=' }

/** Compares one claim, or what a condition makes of it, with a constant. */
export function translateComparison({ node, scope }: Expression, constant: Scalar, equal: boolean): Paths | undefined {
  const claim = claimOf(node, scope)
  if (claim !== undefined) return only(among(claim, [constant], !equal))
  const converted = convertedOf(node, scope)
  if (converted?.to === 'text' && typeof constant === 'string')
    return only(among(converted.claim, textsOf(constant), !equal))
  if (converted?.to === 'number' && typeof constant === 'number') {
    const test = among(converted.claim, [constant, String(constant)], !equal)
    return only({ kind: 'converted', ...converted, test })
  }
  const affixed = typeof constant === 'string' ? affixedOf(node, scope) : undefined
  return affixed === undefined ? undefined : equalsAffixed(affixed, String(constant), equal)
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
  if (typeof text !== 'string') return undefined
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
