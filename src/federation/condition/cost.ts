// Estimates the longest time that a condition can take on any accepted token (reference: Condition), from its syntax
// tree before it is saved. Forbidding nested macros does not bound the time: chained `map`s double their result, and
// every absorbed error costs an exception.
import type { ASTNode } from '@marcbachmann/cel-js'
import {
  claimCharactersMax,
  conditionCollectionItemsMax,
  conditionStringCharactersMax,
  scopesEntriesMax,
  subjectTokenBytesMax,
} from '../../limits.ts'
import { macros } from './permitted.ts'

/**
 * Measured nanoseconds, rounded up: for one node, one exception thrown and caught, one item that `in` checks, one
 * compared character (converting one takes three times as long), and one pair of characters in a substring search.
 */
const node = 250
const exception = 6_000
const item = 50
const character = 1
const characterPair = 0.5

/**
 * Limits of a value: characters of a string, items of a collection, and the total of characters and items inside,
 * counted each time they are reached. A value without a static type is dynamic and can fail anywhere.
 */
type Bounds = {
  kind: 'text' | 'scalar' | 'collection' | 'dynamic'
  characters: number
  items: number
  weight: number
  element?: Bounds
}
type Estimate = { nanoseconds: number; canFail: boolean; bounds: Bounds }
type Scope = ReadonlyMap<string, Bounds>

const scalar: Bounds = { kind: 'scalar', characters: 0, items: 0, weight: 1 }
/** Any claim. All claims together fit into one token. */
const dynamic: Bounds = {
  kind: 'dynamic',
  characters: conditionStringCharactersMax,
  items: conditionCollectionItemsMax,
  weight: subjectTokenBytesMax,
}
const textOf = (characters: number): Bounds => ({ kind: 'text', characters, items: 0, weight: characters + 1 })
const collectionOf = (items: number, weight: number, element: Bounds): Bounds => ({
  kind: 'collection',
  characters: 0,
  items,
  weight,
  element,
})
/** A list in a token. All its items together fit into one token. */
const claimedListOf = (items: number, element: Bounds): Bounds => collectionOf(items, subjectTokenBytesMax, element)
const variables: Scope = new Map([
  ['subject', textOf(claimCharactersMax)],
  ['token_type', textOf(conditionStringCharactersMax)],
  ['audience', claimedListOf(conditionCollectionItemsMax, textOf(claimCharactersMax))],
  ['scopes', claimedListOf(scopesEntriesMax, textOf(claimCharactersMax))],
  ['claims', claimedListOf(conditionCollectionItemsMax, dynamic)],
])

/** Returns the longest time of an evaluation in nanoseconds. */
export function estimateNanoseconds(ast: ASTNode): number {
  return estimate(ast, variables).nanoseconds + exception
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
      const nanoseconds = sum(base, index) + 2 * node + index.bounds.characters * character
      return { nanoseconds, canFail: true, bounds: base.bounds.element ?? dynamic }
    }
    case 'list':
      return aggregate(all(ast.args, scope))
    case 'map':
      return mapped(all(ast.args.flat(), scope))
    case '?:': {
      const [condition, yes, no] = all(ast.args, scope)
      const nanoseconds = condition.nanoseconds + Math.max(yes.nanoseconds, no.nanoseconds) + node
      const canFail = condition.canFail || yes.canFail || no.canFail || isDynamic(condition)
      return { nanoseconds, canFail, bounds: merged(yes.bounds, no.bounds) }
    }
    case '!_': {
      const operand = estimate(ast.args, scope)
      return { nanoseconds: operand.nanoseconds + node, canFail: operand.canFail || isDynamic(operand), bounds: scalar }
    }
    case '-_':
      return { nanoseconds: estimate(ast.args, scope).nanoseconds + 2 * node, canFail: true, bounds: scalar }
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

type Estimates<Nodes extends readonly ASTNode[]> = { [Index in keyof Nodes]: Estimate }
function all<const Nodes extends readonly ASTNode[]>(nodes: Nodes, scope: Scope): Estimates<Nodes> {
  return nodes.map((each) => estimate(each, scope)) as Estimates<Nodes>
}

const leaf = (bounds: Bounds): Estimate => ({ nanoseconds: node, canFail: false, bounds })
const sum = (...estimates: Estimate[]): number => estimates.reduce((total, { nanoseconds }) => total + nanoseconds, 0)
const isDynamic = ({ bounds }: Estimate): boolean => bounds.kind === 'dynamic'

/**
 * Returns the limits of a value that can be either of two: the larger of each limit. Two scalars can have different
 * types.
 */
function merged(one: Bounds, other: Bounds): Bounds {
  return {
    kind: one.kind === other.kind && one.kind !== 'scalar' ? one.kind : 'dynamic',
    characters: Math.max(one.characters, other.characters),
    items: Math.max(one.items, other.items),
    weight: Math.max(one.weight, other.weight),
    ...mergedElement(one, other),
  }
}

/** A dynamic value has no element limits; its contents are dynamic too. */
function mergedElement(one: Bounds, other: Bounds): { element?: Bounds } {
  if (one.element === undefined && other.element === undefined) return {}
  const [first, second] = [one, other].map((each) => each.element ?? (each.items > 0 ? dynamic : undefined))
  const element = first === undefined || second === undefined ? (first ?? second) : merged(first, second)
  return element === undefined ? {} : { element }
}

function aggregate(members: readonly Estimate[]): Estimate {
  const bounds = members.map((each) => each.bounds)
  const weight = bounds.reduce((total, each) => total + each.weight, 1)
  const element = bounds.length === 0 ? scalar : bounds.reduce(merged)
  return {
    nanoseconds: sum(...members) + node,
    canFail: members.some(({ canFail }) => canFail),
    bounds: collectionOf(members.length, weight, element),
  }
}

/** A map literal is a list of pairs. */
function mapped(members: readonly Estimate[]): Estimate {
  const { nanoseconds, bounds } = aggregate(members)
  const characters = members.reduce((total, each) => total + each.bounds.characters, 0)
  return { nanoseconds: nanoseconds + (members.length + 1) * node + characters * character, canFail: true, bounds }
}

function call(name: string, given: readonly Estimate[]): Estimate {
  const [first = leaf(scalar), second = leaf(scalar)] = given
  const canFail = given.some((each) => each.canFail || isDynamic(each)) || name === 'int' || name === 'double'
  const own =
    name === 'contains'
      ? pairsOf(first.bounds.characters, second.bounds.characters) * characterPair
      : Math.max(first.bounds.characters, second.bounds.characters) * 3 * character
  const bounds = name === 'string' ? textOf(Math.max(first.bounds.characters, 32)) : scalar
  return { nanoseconds: sum(...given) + node + own, canFail, bounds }
}

/** Counts every position in the first string at which the second can start, times its length. */
function pairsOf(haystack: number, needle: number): number {
  const worst = Math.min(needle, haystack / 2)
  return worst * (haystack - worst) + haystack + needle
}

function binary(operator: string, [left, right]: readonly [Estimate, Estimate]): Estimate {
  const both = sum(left, right) + node
  const canFail = left.canFail || right.canFail
  const isUntyped = isDynamic(left) || isDynamic(right)
  switch (operator) {
    case '&&':
    case '||': {
      const absorbed = [left, right].filter((each) => each.canFail || isDynamic(each)).length * exception
      return { nanoseconds: both + absorbed, canFail: canFail || isUntyped, bounds: scalar }
    }
    case '==':
    case '!=':
      return { nanoseconds: both + compared(left.bounds, right.bounds), canFail, bounds: scalar }
    case 'in': {
      const { items, weight, element = dynamic } = right.bounds
      const atMost = weight * (left.bounds.items > 0 ? node : character)
      const looked =
        left.bounds.characters * character + items * item + Math.min(items * compared(left.bounds, element), atMost)
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

/** A comparison of unequal values ends at the latest at the end of the smaller one. */
function compared(left: Bounds, right: Bounds): number {
  const weight = Math.min(left.weight, right.weight)
  return left.items > 0 && right.items > 0 ? weight * node : weight * character
}

function joined(left: Bounds, right: Bounds): Bounds {
  return {
    kind: left.kind === right.kind ? left.kind : 'dynamic',
    characters: left.characters + right.characters,
    items: left.items + right.items,
    weight: left.weight + right.weight,
    ...mergedElement(left, right),
  }
}

/** `all` and `exists` absorb the error of every item; the other macros stop at the first error. */
function macro(name: string, receiver: ASTNode, given: readonly ASTNode[], scope: Scope): Estimate {
  const range = estimate(receiver, scope)
  const [variable, ...rest] = given
  const inside = new Map(scope)
  if (variable?.op === 'id') inside.set(variable.args, range.bounds.element ?? dynamic)
  const bodies = rest.map((body) => estimate(body, inside))
  const result = bodies.at(-1) ?? leaf(scalar)
  const failing = bodies.some((each) => each.canFail || isDynamic(each))
  const absorbed = failing && (name === 'all' || name === 'exists') ? exception : 0
  const { items } = range.bounds
  const bounds =
    name === 'filter'
      ? filtered(range.bounds)
      : name === 'map'
        ? collectionOf(items, items * result.bounds.weight, result.bounds)
        : scalar
  return {
    nanoseconds: range.nanoseconds + node + items * (sum(...bodies) + node + absorbed),
    canFail: range.canFail || isDynamic(range) || failing,
    bounds,
  }
}

/** `filter` turns a map into a list of keys. */
function filtered({ items, weight, element = dynamic }: Bounds): Bounds {
  return collectionOf(items, weight, element)
}
