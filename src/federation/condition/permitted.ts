// Which CEL a condition may use (reference: Condition): an allow list over the syntax tree, in addition to the engine's
// own checker. It does not know costs or results.
import type { ASTNode } from '@marcbachmann/cel-js'

/** A problem in a condition and its position, as offsets into the source in UTF-16 units. */
export type ConditionFault = { message: string; start: number; end: number; hint?: string }

/** The variables of a condition and their CEL types (reference: Condition). */
export const conditionVariables = {
  subject: 'string',
  audience: 'list<string>',
  scopes: 'list<string>',
  token_type: 'string',
  claims: 'map<string, dyn>',
} as const

const functions = ['size', 'has', 'int', 'double', 'string']
const methods = ['size', 'startsWith', 'endsWith', 'contains']
export const macros = ['all', 'exists', 'exists_one', 'filter', 'map']
const binaryOperators = ['==', '!=', '<', '<=', '>', '>=', '+', '-', '*', '/', '%', 'in', '||', '&&', '[]']
export const int64Max = 2n ** 63n - 1n

/** Macro variables in scope, and whether their values can have members. */
type Scope = ReadonlyMap<string, { isDynamic: boolean }>
const outermost: Scope = new Map()

/** Returns the first part of a parsed condition that is not allowed. */
export function findForbidden(node: ASTNode, scope: Scope = outermost): ConditionFault | undefined {
  switch (node.op) {
    case 'value':
      return checkLiteral(node)
    case 'id':
      if (Object.hasOwn(conditionVariables, node.args) || scope.has(node.args)) return undefined
      return faultAt(node, `Unknown variable ${node.args}`, `use ${Object.keys(conditionVariables).join(', ')}`)
    case '.':
      return findForbidden(node.args[0], scope)
    case 'list':
      return firstIn(node.args, scope)
    case 'map':
      return firstIn(node.args.flat(), scope) ?? checkKeys(node)
    case '?:':
      return firstIn(node.args, scope)
    case '!_':
      return findForbidden(node.args, scope)
    case '-_':
      if (isSmallestInteger(node)) return undefined
      if (isSmallestInteger(node.args)) return faultAt(node, 'The number exceeds 64 bits')
      return findForbidden(node.args, scope)
    case 'call':
      return checkCall(node, scope)
    case 'rcall':
      return checkMethod(node, scope)
    default:
      if (!binaryOperators.includes(node.op)) return faultAt(node, `The operator ${node.op} is not available`)
      return firstIn(node.args as [ASTNode, ASTNode], scope) ?? checkIndex(node)
  }
}

function firstIn(nodes: readonly ASTNode[], scope: Scope): ConditionFault | undefined {
  for (const node of nodes) {
    const fault = findForbidden(node, scope)
    if (fault !== undefined) return fault
  }
  return undefined
}

function checkLiteral(node: ASTNode & { op: 'value' }): ConditionFault | undefined {
  const { args: value } = node
  if (typeof value === 'bigint') return value <= int64Max ? undefined : faultAt(node, 'The number exceeds 64 bits')
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return undefined
  return faultAt(node, 'Bytes and unsigned numbers are not available', 'write a string or a plain number')
}

/** The smallest int64 is written as the negation of a number that is too large. */
function isSmallestInteger(node: ASTNode): boolean {
  return node.op === '-_' && node.args.op === 'value' && node.args.args === int64Max + 1n
}

function checkKeys(node: ASTNode & { op: 'map' }): ConditionFault | undefined {
  const seen = new Set<unknown>()
  for (const [key] of node.args) {
    if (key.op !== 'value') continue
    if (seen.has(key.args)) return faultAt(key, 'The map has this key twice')
    seen.add(key.args)
  }
  return undefined
}

/** The engine's checker accepts `claims[1]`, although its keys are strings. */
function checkIndex(node: ASTNode): ConditionFault | undefined {
  if (node.op !== '[]') return undefined
  const [object, index] = node.args
  if (object.op !== 'id' || object.args !== 'claims' || index.op !== 'value' || typeof index.args === 'string')
    return undefined
  return faultAt(index, 'Claim names must be strings', 'write claims["name"] or claims.name')
}

function checkCall(node: ASTNode & { op: 'call' }, scope: Scope): ConditionFault | undefined {
  const [name, given] = node.args
  if (!functions.includes(name)) return notAvailable(node, name)
  if (name === 'has') return checkHas(node, given, scope)
  return firstIn(given, scope)
}

/** `has()` applies only to members of claims; the engine's checker accepts `has(subject.x)`. */
function checkHas(node: ASTNode, given: ASTNode[], scope: Scope): ConditionFault | undefined {
  const [asked] = given
  if (given.length !== 1 || asked?.op !== '.' || !isDynamic(asked.args[0], scope, true))
    return faultAt(node, 'has() asks for a member of a claim', 'write has(claims.name)')
  return findForbidden(asked.args[0], scope)
}

function checkMethod(node: ASTNode & { op: 'rcall' }, scope: Scope): ConditionFault | undefined {
  const [name, receiver, given] = node.args
  if (macros.includes(name)) return checkMacro(node, scope)
  if (!methods.includes(name)) return notAvailable(node, name)
  return findForbidden(receiver, scope) ?? firstIn(given, scope)
}

/** A comprehension macro must not contain another one; a chain is not nested (reference: Condition). */
function checkMacro(node: ASTNode & { op: 'rcall' }, scope: Scope): ConditionFault | undefined {
  const [name, receiver, [variable, ...body]] = node.args
  if (scope.size > 0) return faultAt(node, `${name}() cannot stand inside another macro`, 'combine them with && or ||')
  if (variable?.op !== 'id') return faultAt(variable ?? node, `${name}() begins with a variable, as in ${name}(x, …)`)
  if (Object.hasOwn(conditionVariables, variable.args))
    return faultAt(variable, `${variable.args} is a variable of conditions already`, 'choose another name')
  const inside: Scope = new Map([[variable.args, { isDynamic: isDynamic(receiver, scope, false) }]])
  return findForbidden(receiver, scope) ?? firstIn(body, inside)
}

/**
 * Reports whether a value comes from the claims and so has an unknown type. `claims` itself is a map; only its members
 * are unknown.
 */
function isDynamic(node: ASTNode, scope: Scope, countsClaims: boolean): boolean {
  if (node.op === 'id') return node.args === 'claims' ? countsClaims : scope.get(node.args)?.isDynamic === true
  if (node.op === '.' || node.op === '[]') return isDynamic(node.args[0], scope, true)
  return node.op === 'rcall' && node.args[0] === 'filter' && isDynamic(node.args[1], scope, false)
}

function notAvailable(node: ASTNode, name: string): ConditionFault {
  const hint =
    name === 'matches'
      ? 'use startsWith, endsWith, contains or =='
      : `there are ${[...new Set([...functions, ...methods, ...macros])].join(', ')}`
  return faultAt(node, `${name}() is not available`, hint)
}

function faultAt({ start, end }: ASTNode, message: string, hint?: string): ConditionFault {
  return hint === undefined ? { message, start, end } : { message, start, end, hint }
}
