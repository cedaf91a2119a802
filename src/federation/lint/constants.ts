// The parts of a condition that no token changes, and the claims that the others read.
import type { ASTNode } from '@marcbachmann/cel-js'
import { prepare } from '../condition/engine.ts'
import { type ClaimName, claimAt, type Scalar } from './atom.ts'

/** Macro variables: an item of a literal list, or an item of a claim. */
export type Bindings = ReadonlyMap<string, { constant: Scalar } | { item: ClaimName }>

/** How much of a condition is still examined. Each node counts, each time it is reached. */
export type Budget = { nodes: number; evaluations: number }

/** What the translation of a condition carries along. */
export type Scope = { source: string; bindings: Bindings; budget: Budget }

const variables: Partial<Record<string, ClaimName>> = {
  subject: 'sub',
  audience: 'aud',
  scopes: 'scopes',
  token_type: 'token_type',
}

/** Returns the claim that a node reads, or undefined if it computes something. */
export function claimOf(node: ASTNode, scope: Scope): ClaimName | undefined {
  if (node.op === 'id') {
    const bound = scope.bindings.get(node.args)
    return bound === undefined ? variables[node.args] : 'item' in bound ? bound.item : undefined
  }
  if (node.op === '.') return memberOf(node.args[0], node.args[1], scope)
  if (node.op !== '[]') return undefined
  const [object, index] = node.args
  const name = constantOf(index, scope)
  return typeof name === 'string' ? memberOf(object, name, scope) : undefined
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
export function constantOf(node: ASTNode, scope: Scope): Scalar | undefined {
  switch (node.op) {
    case 'value':
      return scalarOf(node.args)
    case 'id': {
      const bound = scope.bindings.get(node.args)
      return bound !== undefined && 'constant' in bound ? bound.constant : undefined
    }
    case '+': {
      const [left, right] = node.args.map((each) => constantOf(each, scope))
      return typeof left === 'string' && typeof right === 'string' ? left + right : evaluated(node, scope)
    }
    case '.':
    case 'list':
      return undefined
    default:
      return evaluated(node, scope)
  }
}

/** Returns the values of a literal list, or undefined. */
export function constantsOf(node: ASTNode, scope: Scope): Scalar[] | undefined {
  if (node.op !== 'list') return undefined
  const values = node.args.map((each) => constantOf(each, scope))
  return values.every((value) => value !== undefined) ? (values as Scalar[]) : undefined
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
