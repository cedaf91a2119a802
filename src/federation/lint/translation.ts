// From the syntax tree of a condition to paths. Negation moves inward: a path says when the condition is true, or when
// it is false. An error is neither, and needs no path.
import type { ASTNode } from '@marcbachmann/cel-js'
import { macros } from '../condition/permitted.ts'
import { type Atom, always, among, type ClaimName, keyOf, never, type OrderOperator, only, type Paths } from './atom.ts'
import { translateComparison, translateOrder, translatePartlyEqual, translateText } from './comparison.ts'
import { claimOf, constantOf, type Expression, isClaims, resolve, type Scope } from './constants.ts'
import { bind, type Element, elementsOf } from './elements.ts'
import { compareNumbers, filterCounted, isNode, replaced } from './forms.ts'
import { allOf, anyOf } from './paths.ts'

/** A condition has at most 2,000 characters; only macros over literal lists reach a node more than once. */
const nodesMax = 5_000
/** Constant parts that the engine computes. */
const evaluationsMax = 50

const item: ClaimName = '@'
const opposites: Record<OrderOperator, OrderOperator> = { '<': '>=', '<=': '>', '>': '<=', '>=': '<' }

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
  return translateOperator(node, truth, scope) ?? translateChoice(node, truth, scope) ?? opaque(node, truth, scope)
}

function opaque({ start, end }: ASTNode, truth: boolean, { source }: Scope): Paths {
  return only({ kind: 'opaque', source: source.slice(start, end), negated: !truth })
}

function translateOperator(node: ASTNode, truth: boolean, scope: Scope): Paths | undefined {
  switch (node.op) {
    case '==':
    case '!=': {
      const [left, right] = node.args
      return (
        translateEquality({ node: left, scope }, { node: right, scope }, (node.op === '==') === truth) ??
        translateCount(node, truth, scope)
      )
    }
    case 'in':
      return translateMembership(node, truth, scope)
    case '<':
    case '<=':
    case '>':
    case '>=':
      return (
        translateOrder(node.args, truth ? node.op : opposites[node.op], scope) ?? translateCount(node, truth, scope)
      )
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

function translateEquality(left: Expression, right: Expression, equal: boolean): Paths | undefined {
  for (const [one, other] of [
    [left, right],
    [right, left],
  ] as const) {
    const constant = constantOf(other.node, other.scope)
    if (constant === undefined) continue
    const known = constantOf(one.node, one.scope)
    if (known !== undefined && typeof known === typeof constant) return (known === constant) === equal ? always : never
    const paths = translateComparison(one, constant, equal)
    if (paths !== undefined) return paths
    if (typeof constant === 'boolean') return translate(one.node, constant === equal, one.scope)
  }
  const [ones, others] = [left, right]
    .map(resolve)
    .map(({ node, scope }) => (node.op === 'list' ? elementsOf(node, scope) : undefined))
  if (ones === undefined || others === undefined)
    return equal ? (translatePartlyEqual(left, right) ?? translatePartlyEqual(right, left)) : undefined
  if (ones.length !== others.length) return equal ? never : always
  const pairs = ones.map((one, index) => equalityOr(left.node, one, others[index] ?? one, equal))
  return equal ? allOf(pairs) : anyOf(pairs)
}

/** Compares two expressions. What is not understood is opaque; it stands for a part of `node`. */
function equalityOr(node: ASTNode, one: Expression, other: Expression, equal: boolean): Paths {
  if (one.scope.budget.nodes-- <= 0) return opaque(node, equal, one.scope)
  return translateEquality(one, other, equal) ?? opaque(node, equal, one.scope)
}

function translateMembership(node: ASTNode & { op: 'in' }, truth: boolean, scope: Scope): Paths | undefined {
  const [left, right] = node.args
  const claim = claimOf(left, scope)
  const elements = elementsOf(right, scope)
  if (elements !== undefined) {
    const constants = elements.map(({ node: each, scope: inside, guards }) =>
      guards.length === 0 ? constantOf(each, inside) : undefined,
    )
    const values = constants.filter((each) => each !== undefined)
    if (claim !== undefined && values.length === constants.length) {
      if (values.length === 0) return truth ? never : only({ kind: 'present', claim, negated: false })
      return only(among(claim, values, !truth))
    }
    return translateElements(elements, truth, (each) => equalityOr(node, { node: left, scope }, each, truth))
  }
  const value = constantOf(left, scope)
  if (value === undefined) return undefined
  if (isClaims(right) && typeof value === 'string') return only({ kind: 'present', claim: value, negated: !truth })
  const list = claimOf(right, scope)
  if (list === undefined) return undefined
  return only(
    truth ? { kind: 'some', claim: list, item: [among(item, [value], false)] } : { kind: 'every', claim: list },
  )
}

/** Some element that is in the list passes a test, or none does. The test itself is given for this truth. */
function translateElements(elements: readonly Element[], some: boolean, test: (each: Element) => Paths): Paths {
  const each = elements.map((element) => {
    const guards = element.guards.map(({ node, scope }) => translate(node, some, scope))
    return some ? allOf([...guards, test(element)]) : anyOf([...guards, test(element)])
  })
  return some ? anyOf(each) : allOf(each)
}

/** `size(list.filter(…)) > 0` asks the same as exists(). Another number asks for more, which is opaque. */
function translateCount(node: ASTNode, truth: boolean, scope: Scope): Paths | undefined {
  const [left, right] = node.args as [ASTNode, ASTNode]
  const [filter, limit] = [filterCounted(left), constantOf(right, scope)]
  if (filter === undefined || typeof limit !== 'number') return undefined
  const holds = (count: number): boolean => compareNumbers(count, node.op, limit) === truth
  const more = [1, limit - 1, limit, limit + 1].filter((count) => count >= 1)
  if (holds(0)) return more.some(holds) ? undefined : translateMacro(filter, false, scope)
  const some = translateMacro(filter, true, scope)
  if (some === undefined || more.every(holds)) return some
  return allOf([some, opaque(node, truth, scope)])
}

function translateMacro(node: ASTNode & { op: 'rcall' }, truth: boolean, scope: Scope): Paths | undefined {
  const [name, receiver, [variable, body]] = node.args
  if (variable?.op !== 'id' || body === undefined) return undefined
  const isAll = name === 'all'
  if (!isAll && name !== 'exists' && !(name === 'exists_one' && truth)) return undefined
  const elements = elementsOf(receiver, scope)
  // all() fails if some element fails.
  if (elements !== undefined)
    return translateElements(elements, isAll !== truth, (each) =>
      translate(body, truth, bind(scope, variable.args, each)),
    )
  const claim = claimOf(receiver, scope)
  if (claim === undefined) return undefined
  // An empty list satisfies all(), and does not satisfy exists().
  if (isAll === truth) return only({ kind: 'every', claim })
  const paths = translate(body, !isAll, bind(scope, variable.args, { item }))
  return anyOf(paths.map((path) => ofItem(claim, [...path.values()])))
}

/** A test of a conditional expression, or of a value in a map or list, is a test of each value that it can have. */
function translateChoice(node: ASTNode, truth: boolean, scope: Scope): Paths | undefined {
  const own = node.op === '[]' ? choicesOf(node, scope) : undefined
  if (own !== undefined) return anyOf(own.map(({ when, value }) => allOf([when, translate(value, truth, scope)])))
  if (!Array.isArray(node.args)) return undefined
  const parts: unknown[] = node.args
  for (const [index, part] of parts.entries()) {
    const choices = isNode(part) ? choicesOf(part, scope) : undefined
    if (choices === undefined) continue
    const tests = choices.map(({ when, value }) =>
      allOf([when, translate(replaced(node, parts.with(index, value)), truth, scope)]),
    )
    return anyOf(tests)
  }
  return undefined
}

function choicesOf(node: ASTNode, scope: Scope): { when: Paths; value: ASTNode }[] | undefined {
  if (node.op === '?:') {
    const [condition, yes, no] = node.args
    return [
      { when: translate(condition, true, scope), value: yes },
      { when: translate(condition, false, scope), value: no },
    ]
  }
  if (node.op !== '[]') return undefined
  const [object, index] = node.args
  if (object.op !== 'map') return undefined
  return object.args.map(([key, value]) => ({
    when: equalityOr(node, { node: index, scope }, { node: key, scope }, true),
    value,
  }))
}

/** An item satisfies the atoms about it. The others hold for the token, since the list is not empty. */
function ofItem(claim: ClaimName, atoms: readonly Atom[]): Paths {
  const isOfItem = (atom: Atom): boolean => atom.kind !== 'opaque' && `${atom.claim}\0`.startsWith(`${item}\0`)
  const ofToken = atoms.filter((atom) => !isOfItem(atom))
  const some: Atom = { kind: 'some', claim, item: atoms.filter(isOfItem) }
  return [new Map([...ofToken, some].map((atom) => [keyOf(atom), atom]))]
}
