// The longest that a condition can take on any token that is let in (decisions §4), estimated over its syntax tree before it is saved.
// Forbidding nested macros does not bound time: chained `map`s double their result, and every absorbed error costs an exception.
import type { ASTNode } from '@marcbachmann/cel-js'
import {
  claimCharactersMax,
  conditionCollectionItemsMax,
  conditionStringCharactersMax,
  scopesEntriesMax,
  subjectTokenBytesMax,
} from '../limits.ts'
import { macros } from './condition-rules.ts'

/** Nanoseconds, rounded up from what was measured: one node, one exception made and caught,
 * one item looked at by `in`, one character compared, two sought in each other. */
const node = 250
const exception = 6_000
const item = 50
const character = 1
const characterPair = 0.25

/** Bounds of a value: characters of a string, items of a collection, and characters and items of all that is inside. */
type Bounds = { characters: number; items: number; weight: number; isDynamic: boolean; element?: Bounds }
type Estimate = { nanoseconds: number; canFail: boolean; bounds: Bounds }
type Scope = ReadonlyMap<string, Bounds>

const scalar: Bounds = { characters: 0, items: 0, weight: 1, isDynamic: false }
/** Whatever a claim holds; all of them together fit into a token. */
const dynamic: Bounds = {
  characters: conditionStringCharactersMax,
  items: conditionCollectionItemsMax,
  weight: subjectTokenBytesMax,
  isDynamic: true,
}
const textOf = (characters: number): Bounds => ({ characters, items: 0, weight: characters + 1, isDynamic: false })
const listOf = (items: number, element: Bounds): Bounds => ({
  characters: 0,
  items,
  weight: Math.min(items * element.weight, subjectTokenBytesMax),
  isDynamic: false,
  element,
})
const variables: Scope = new Map([
  ['subject', textOf(claimCharactersMax)],
  ['token_type', textOf(conditionStringCharactersMax)],
  ['audience', listOf(conditionCollectionItemsMax, textOf(claimCharactersMax))],
  ['scopes', listOf(scopesEntriesMax, textOf(claimCharactersMax))],
  ['claims', { ...dynamic, isDynamic: false, element: dynamic }],
])

/** Nanoseconds that evaluating may take at the most. */
export function estimateNanoseconds(ast: ASTNode): number {
  return estimate(ast, variables).nanoseconds
}

function estimate(ast: ASTNode, scope: Scope): Estimate {
  switch (ast.op) {
    case 'value':
      return leaf(typeof ast.args === 'string' ? textOf(ast.args.length) : scalar)
    case 'id':
      return leaf(scope.get(ast.args) ?? dynamic)
    case '.': {
      const base = estimate(ast.args[0], scope)
      return { nanoseconds: base.nanoseconds + node, canFail: true, bounds: base.bounds.element ?? dynamic }
    }
    case '[]': {
      const [base, index] = all(ast.args, scope)
      return { nanoseconds: sum(base, index) + node, canFail: true, bounds: base.bounds.element ?? dynamic }
    }
    case 'list':
      return aggregate(all(ast.args, scope))
    case 'map':
      return aggregate(all(ast.args.flat(), scope))
    case '?:': {
      const [condition, yes, no] = all(ast.args, scope)
      const nanoseconds = condition.nanoseconds + Math.max(yes.nanoseconds, no.nanoseconds) + node
      const canFail = condition.canFail || yes.canFail || no.canFail || condition.bounds.isDynamic
      return { nanoseconds, canFail, bounds: larger(yes.bounds, no.bounds) }
    }
    case '!_':
    case '-_': {
      const { nanoseconds, canFail, bounds } = estimate(ast.args, scope)
      return {
        nanoseconds: nanoseconds + node,
        canFail: canFail || bounds.isDynamic || ast.op === '-_',
        bounds: scalar,
      }
    }
    case 'call':
      return call(ast.args[0], all(ast.args[1], scope))
    case 'rcall':
      return macros.includes(ast.args[0])
        ? macro(ast.args[0], ast.args[1], ast.args[2], scope)
        : call(ast.args[0], all([ast.args[1], ...ast.args[2]], scope))
    default:
      return binary(ast.op, all(ast.args as [ASTNode, ASTNode], scope))
  }
}

type Mapped<Nodes extends readonly ASTNode[]> = { [Index in keyof Nodes]: Estimate }
function all<const Nodes extends readonly ASTNode[]>(nodes: Nodes, scope: Scope): Mapped<Nodes> {
  return nodes.map((each) => estimate(each, scope)) as Mapped<Nodes>
}

const leaf = (bounds: Bounds): Estimate => ({ nanoseconds: node, canFail: false, bounds })
const sum = (...estimates: Estimate[]): number => estimates.reduce((total, { nanoseconds }) => total + nanoseconds, 0)
const larger = (a: Bounds, b: Bounds): Bounds => (a.weight >= b.weight ? a : b)

function aggregate(members: readonly Estimate[]): Estimate {
  const element = members.map(({ bounds }) => bounds).reduce(larger, scalar)
  const weight = members.reduce((total, { bounds }) => total + bounds.weight, 1)
  const bounds = { characters: 0, items: members.length, weight, isDynamic: false, element }
  return { nanoseconds: sum(...members) + node, canFail: members.some(({ canFail }) => canFail), bounds }
}

function call(name: string, given: readonly Estimate[]): Estimate {
  const [first = leaf(scalar), second = leaf(scalar)] = given
  const canFail = given.some((each) => each.canFail || each.bounds.isDynamic) || name === 'int' || name === 'double'
  const own =
    name === 'contains'
      ? first.bounds.characters * second.bounds.characters * characterPair
      : Math.max(first.bounds.characters, second.bounds.characters) * 2 * character
  const bounds = name === 'string' ? textOf(Math.max(first.bounds.characters, 32)) : scalar
  return { nanoseconds: sum(...given) + node + own, canFail, bounds }
}

function binary(operator: string, [left, right]: readonly [Estimate, Estimate]): Estimate {
  const both = sum(left, right) + node
  const canFail = left.canFail || right.canFail
  const isUntyped = left.bounds.isDynamic || right.bounds.isDynamic
  switch (operator) {
    case '&&':
    case '||': {
      const absorbed = [left, right].filter((each) => each.canFail || each.bounds.isDynamic).length * exception
      return { nanoseconds: both + absorbed, canFail: canFail || isUntyped, bounds: scalar }
    }
    case '==':
    case '!=':
      return { nanoseconds: both + compared(left.bounds, right.bounds), canFail, bounds: scalar }
    case 'in': {
      const { items, weight, element = dynamic } = right.bounds
      const atMost = weight * (left.bounds.items > 0 ? node : character)
      const looked = items * item + Math.min(items * compared(left.bounds, element), atMost)
      return { nanoseconds: both + looked, canFail: canFail || isUntyped, bounds: scalar }
    }
    case '+': {
      const bounds = joined(left.bounds, right.bounds)
      return { nanoseconds: both + bounds.characters * character + bounds.items * node, canFail: true, bounds }
    }
    default:
      return { nanoseconds: both + compared(left.bounds, right.bounds), canFail: true, bounds: scalar }
  }
}

/** Unequal values are told apart no later than at the end of the smaller one. */
function compared(left: Bounds, right: Bounds): number {
  const weight = Math.min(left.weight, right.weight)
  return left.items > 0 && right.items > 0 ? weight * node : weight * character
}

function joined(left: Bounds, right: Bounds): Bounds {
  const element = left.element === undefined ? right.element : larger(left.element, right.element ?? left.element)
  return {
    characters: left.characters + right.characters,
    items: left.items + right.items,
    weight: left.weight + right.weight,
    isDynamic: left.isDynamic || right.isDynamic,
    ...(element === undefined ? {} : { element }),
  }
}

/** Of `all` and `exists` every item's error is absorbed; the other macros end at the first. */
function macro(name: string, receiver: ASTNode, given: readonly ASTNode[], scope: Scope): Estimate {
  const range = estimate(receiver, scope)
  const [variable, ...rest] = given
  const inside = new Map(scope)
  if (variable?.op === 'id') inside.set(variable.args, range.bounds.element ?? dynamic)
  const bodies = rest.map((body) => estimate(body, inside))
  const result = bodies.at(-1) ?? leaf(scalar)
  const failing = bodies.some(({ canFail, bounds }) => canFail || bounds.isDynamic)
  const absorbed = failing && (name === 'all' || name === 'exists') ? exception : 0
  const { items } = range.bounds
  const bounds =
    name === 'filter'
      ? range.bounds
      : name === 'map'
        ? { characters: 0, items, weight: items * result.bounds.weight, isDynamic: false, element: result.bounds }
        : scalar
  return {
    nanoseconds: range.nanoseconds + node + items * (sum(...bodies) + node + absorbed),
    canFail: range.canFail || range.bounds.isDynamic || failing,
    bounds,
  }
}
