// From the syntax tree of a condition to paths. Negation moves inward: a path says when the condition is true, or when
// it is false. An error is neither, and needs no path.
import type { ASTNode } from '@marcbachmann/cel-js'
import { macros } from '../condition/permitted.ts'
import {
  type Atom,
  always,
  among,
  type ClaimName,
  holdsText,
  keyOf,
  never,
  type OrderOperator,
  only,
  type Paths,
  type TextOperator,
} from './atom.ts'
import { claimOf, constantOf, constantsOf, isClaims, type Scope } from './constants.ts'
import { allOf, anyOf } from './paths.ts'

/** A condition has at most 2,000 characters; only macros over literal lists reach a node more than once. */
const nodesMax = 5_000
/** Constant parts that the engine computes. */
const evaluationsMax = 50

const item: ClaimName = '@'
const opposites: Record<OrderOperator, OrderOperator> = { '<': '>=', '<=': '>', '>': '<=', '>=': '<' }
const mirrored: Record<OrderOperator, OrderOperator> = { '<': '>', '<=': '>=', '>': '<', '>=': '<=' }

/**
 * Returns paths of which one holds for every token for which the condition is true, or is false. Takes bounded time.
 */
export function pathsOfCondition({ ast, source }: { ast: ASTNode; source: string }, truth = true): Paths {
  const budget = { nodes: nodesMax, evaluations: evaluationsMax }
  return translate(ast, truth, { source, bindings: new Map(), budget })
}

/** Returns the paths on which a node is true, or those on which it is false. */
function translate(node: ASTNode, truth: boolean, scope: Scope): Paths {
  if (scope.budget.nodes-- <= 0) return opaque(node, truth, scope)
  switch (node.op) {
    case '&&':
    case '||': {
      const operands = operandsOf(node, node.op).map((each) => translate(each, truth, scope))
      return (node.op === '&&') === truth ? allOf(operands) : anyOf(operands)
    }
    case '!_':
      return translate(node.args, !truth, scope)
    case '?:': {
      const [condition, yes, no] = node.args
      return anyOf([
        allOf([translate(condition, true, scope), translate(yes, truth, scope)]),
        allOf([translate(condition, false, scope), translate(no, truth, scope)]),
      ])
    }
    default:
      return translateTest(node, truth, scope)
  }
}

function operandsOf(node: ASTNode, op: '&&' | '||'): ASTNode[] {
  return node.op === op ? (node.args as [ASTNode, ASTNode]).flatMap((each) => operandsOf(each, op)) : [node]
}

function translateTest(node: ASTNode, truth: boolean, scope: Scope): Paths {
  const constant = constantOf(node, scope)
  if (typeof constant === 'boolean') return constant === truth ? always : never
  const claim = claimOf(node, scope)
  if (claim !== undefined) return only(among(claim, [truth], false))
  const paths = translateOperator(node, truth, scope)
  return paths ?? opaque(node, truth, scope)
}

function opaque({ start, end }: ASTNode, truth: boolean, { source }: Scope): Paths {
  return only({ kind: 'opaque', source: source.slice(start, end), negated: !truth })
}

function translateOperator(node: ASTNode, truth: boolean, scope: Scope): Paths | undefined {
  switch (node.op) {
    case '==':
    case '!=':
      return translateEquality(node.args, (node.op === '==') === truth, scope)
    case 'in':
      return translateMembership(node.args, truth, scope)
    case '<':
    case '<=':
    case '>':
    case '>=':
      return translateOrder(node.args, truth ? node.op : opposites[node.op], scope)
    case 'call': {
      const [name, [given]] = node.args
      const claim = given === undefined ? undefined : claimOf(given, scope)
      return name === 'has' && claim !== undefined ? only({ kind: 'present', claim, negated: !truth }) : undefined
    }
    case 'rcall':
      return macros.includes(node.args[0]) ? translateMacro(node, truth, scope) : translateText(node, truth, scope)
    default:
      return undefined
  }
}

function translateEquality([left, right]: [ASTNode, ASTNode], equal: boolean, scope: Scope): Paths | undefined {
  for (const [one, other] of [
    [left, right],
    [right, left],
  ] as const) {
    const constant = constantOf(other, scope)
    if (constant === undefined) continue
    const known = constantOf(one, scope)
    if (known !== undefined && typeof known === typeof constant) return (known === constant) === equal ? always : never
    const claim = claimOf(one, scope)
    if (claim !== undefined) return only(among(claim, [constant], !equal))
    if (typeof constant === 'boolean') return translate(one, constant === equal, scope)
  }
  return undefined
}

function translateMembership([left, right]: [ASTNode, ASTNode], truth: boolean, scope: Scope): Paths | undefined {
  const claim = claimOf(left, scope)
  const values = constantsOf(right, scope)
  if (claim !== undefined && values !== undefined) {
    if (values.length === 0) return truth ? never : only({ kind: 'present', claim, negated: false })
    return only(among(claim, values, !truth))
  }
  const value = constantOf(left, scope)
  if (value === undefined) return undefined
  if (values !== undefined) return values.includes(value) === truth ? always : never
  if (isClaims(right) && typeof value === 'string') return only({ kind: 'present', claim: value, negated: !truth })
  const list = claimOf(right, scope)
  if (list === undefined) return undefined
  return only(
    truth ? { kind: 'some', claim: list, item: [among(item, [value], false)] } : { kind: 'every', claim: list },
  )
}

function translateOrder([left, right]: [ASTNode, ASTNode], operator: OrderOperator, scope: Scope): Paths | undefined {
  const [claim, limit] = [claimOf(left, scope), constantOf(right, scope)]
  if (claim !== undefined && typeof limit === 'number') return only({ kind: 'order', claim, operator, value: limit })
  const [least, other] = [constantOf(left, scope), claimOf(right, scope)]
  if (other === undefined || typeof least !== 'number') return undefined
  return only({ kind: 'order', claim: other, operator: mirrored[operator], value: least })
}

function translateText(node: ASTNode & { op: 'rcall' }, truth: boolean, scope: Scope): Paths | undefined {
  const [name, receiver, [given]] = node.args
  if (given === undefined || !['startsWith', 'endsWith', 'contains'].includes(name)) return undefined
  const operator = name as TextOperator
  const text = constantOf(given, scope)
  if (typeof text !== 'string') return undefined
  const known = constantOf(receiver, scope)
  if (typeof known === 'string') return holdsText(known, operator, text) === truth ? always : never
  const claim = claimOf(receiver, scope)
  if (claim === undefined) return undefined
  // Every text starts with, ends with and contains nothing.
  if (text === '') return truth ? only({ kind: 'present', claim, negated: false }) : never
  return only({ kind: 'text', claim, negated: !truth, operator, text })
}

function translateMacro(node: ASTNode & { op: 'rcall' }, truth: boolean, scope: Scope): Paths | undefined {
  const [name, receiver, [variable, body]] = node.args
  if (variable?.op !== 'id' || body === undefined) return undefined
  const isAll = name === 'all'
  if (!isAll && name !== 'exists' && !(name === 'exists_one' && truth)) return undefined
  const inside = (bound: { constant: string | number | boolean | null } | { item: ClaimName }): Scope => ({
    ...scope,
    bindings: new Map([[variable.args, bound]]),
  })
  const values = name === 'exists_one' ? undefined : constantsOf(receiver, scope)
  if (values !== undefined) {
    const operands = values.map((constant) => translate(body, truth, inside({ constant })))
    return isAll === truth ? allOf(operands) : anyOf(operands)
  }
  const claim = claimOf(receiver, scope)
  if (claim === undefined) return undefined
  // An empty list satisfies all(), and does not satisfy exists().
  if (isAll === truth) return only({ kind: 'every', claim })
  return anyOf(translate(body, !isAll, inside({ item })).map((path) => ofItem(claim, [...path.values()])))
}

/** An item satisfies the atoms about it. The others hold for the token, since the list is not empty. */
function ofItem(claim: ClaimName, atoms: readonly Atom[]): Paths {
  const isOfItem = (atom: Atom): boolean => atom.kind !== 'opaque' && `${atom.claim}\0`.startsWith(`${item}\0`)
  const ofToken = atoms.filter((atom) => !isOfItem(atom))
  const some: Atom = { kind: 'some', claim, item: atoms.filter(isOfItem) }
  return [new Map([...ofToken, some].map((atom) => [keyOf(atom), atom]))]
}
