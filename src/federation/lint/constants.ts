// The parts of a condition that no token changes, and the claims that the others read.
import type { ASTNode } from '@marcbachmann/cel-js'
import { prepare } from '../condition/engine.ts'
import { type ClaimName, claimAt, type Scalar } from './atom.ts'

/** Macro variables: an item of a claim, or an expression, such as an item of a literal list. */
export type Bindings = ReadonlyMap<string, { item: ClaimName } | Expression>

/** How much of a condition is still examined. Each node counts, each time it is reached. */
export type Budget = { nodes: number; evaluations: number }

/** What the translation of a condition carries along. */
export type Scope = { source: string; bindings: Bindings; budget: Budget }

/** A part of a condition, with what its macro variables stand for. */
export type Expression = { node: ASTNode; scope: Scope }

const variables: Partial<Record<string, ClaimName>> = {
  subject: 'sub',
  audience: 'aud',
  scopes: 'scopes',
  token_type: 'token_type',
}

/** Returns the claim that a node reads, or undefined if it computes something. */
export function claimOf(read: ASTNode, within: Scope): ClaimName | undefined {
  const { node, scope } = resolve({ node: read, scope: within })
  if (node.op === 'id') {
    const bound = scope.bindings.get(node.args)
    if (bound === undefined) return variables[node.args]
    return 'item' in bound ? bound.item : undefined
  }
  if (node.op === '.') return memberOf(node.args[0], node.args[1], scope)
  if (node.op !== '[]') return undefined
  const [object, index] = node.args
  const name = constantOf(index, scope)
  return typeof name === 'string' ? memberOf(object, name, scope) : undefined
}

/** Chained macros can use a variable twice in each, so what it stands for counts each time. */
export function isFollowed({ budget }: Scope): boolean {
  return budget.nodes-- > 0
}

/** Returns what a macro variable or a member of a written map or list stands for, or the expression itself. */
export function resolve(expression: Expression): Expression {
  const { node, scope } = expression
  const bound = node.op === 'id' ? scope.bindings.get(node.args) : memberOfLiteral(node, scope)
  return bound !== undefined && 'node' in bound && isFollowed(scope) ? resolve(bound) : expression
}

function memberOfLiteral(node: ASTNode, scope: Scope): Expression | undefined {
  if (node.op !== '.' && node.op !== '[]') return undefined
  const object = resolve({ node: node.args[0], scope })
  if (object.node.op !== 'map' && object.node.op !== 'list') return undefined
  const name = node.op === '.' ? node.args[1] : constantOf(node.args[1], scope)
  const value =
    object.node.op === 'map'
      ? object.node.args.find(([key]) => name !== undefined && constantOf(key, object.scope) === name)?.[1]
      : typeof name === 'number'
        ? object.node.args[name]
        : undefined
  return value === undefined ? undefined : { node: value, scope: object.scope }
}

function memberOf(object: ASTNode, name: string, scope: Scope): ClaimName | undefined {
  // An example is an object, where a member of this name would reach the prototype of all objects.
  if (name === '__proto__') return undefined
  if (isClaims(object)) return name
  const parent = claimOf(object, scope)
  return parent === undefined ? undefined : claimAt(parent, name)
}

export function isClaims(node: ASTNode): boolean {
  return node.op === 'id' && node.args === 'claims'
}

/** Returns the value of a node that reads no token, or undefined. */
export function constantOf(read: ASTNode, within: Scope): Scalar | undefined {
  const { node, scope } = resolve({ node: read, scope: within })
  switch (node.op) {
    case 'value':
      return scalarOf(node.args)
    case '+': {
      const [left, right] = node.args.map((each) => constantOf(each, scope))
      return typeof left === 'string' && typeof right === 'string' ? left + right : evaluated(node, scope)
    }
    case 'id':
    case '.':
    case 'list':
    case 'map':
      return undefined
    default:
      return evaluated(node, scope)
  }
}

/** The engine itself computes what reads neither a token nor a macro variable. */
function evaluated(node: ASTNode, { source, budget }: Scope): Scalar | undefined {
  if (readsVariables(node) || budget.evaluations-- <= 0) return undefined
  try {
    return scalarOf(prepare(node, source)({}))
  } catch {
    return undefined
  }
}

function readsVariables(node: ASTNode): boolean {
  if (node.op === 'id') return true
  const below: unknown[] = Array.isArray(node.args) ? node.args.flat(2) : [node.args]
  return below.some(
    (each) => typeof each === 'object' && each !== null && 'op' in each && readsVariables(each as ASTNode),
  )
}

function scalarOf(value: unknown): Scalar | undefined {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : undefined
  return value === null || ['string', 'number', 'boolean'].includes(typeof value) ? (value as Scalar) : undefined
}
