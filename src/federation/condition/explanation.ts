// Evaluates the parts of a condition for a token: for an admin, for the audit of a refused exchange, and to find the
// policy that is closest to accepting a token. It decides nothing.
import type { ASTNode } from '@marcbachmann/cel-js'
import { withoutSecrets } from '../../fault.ts'
import {
  claimCharactersMax,
  conditionNanosecondsMax,
  explainedCharactersMax,
  explainedNanosecondsMax,
  explainedPartsMax,
} from '../../limits.ts'
import type { SubjectToken } from '../subject-token/claims.ts'
import { isRefusal } from '../subject-token/refusal.ts'
import { activationOf, type ConditionView } from './activation.ts'
import { type Condition, cutToShow, describeEvaluationError } from './compile.ts'
import { estimateNanoseconds } from './cost.ts'
import { prepare } from './engine.ts'
import { macros } from './permitted.ts'

export type SubExpression = { source: string; value?: string; error?: string }

/**
 * Yields the value of each part of a condition for a token, smallest parts first; the caller can yield to the event
 * loop in between. It omits literals, the insides of macros (their variable has many values), and parts that together
 * could take much longer than the condition itself.
 */
export function* explainParts({ source, ast, usesClaims }: Condition, token: SubjectToken): Generator<SubExpression> {
  const view = activationOf(token, usesClaims)
  if (isRefusal(view)) return
  const parts = [...partsOf(ast, source)]
  let nanosecondsLeft = explainedNanosecondsMax - estimateNanoseconds(ast)
  for (const [index, [part, node]] of parts.entries()) {
    const nanoseconds = node === ast ? 0 : estimateNanoseconds(node)
    if (node !== ast && (index >= explainedPartsMax || nanoseconds > nanosecondsLeft)) continue
    nanosecondsLeft -= nanoseconds
    yield explainPart(part, node, source, view)
  }
}

/**
 * Explains why a condition is false, for the audit. Operands that do not hold come first, each after its own parts; the
 * others follow. The text has about as many characters as the audit stores.
 */
export function explainFalse({ source, ast, usesClaims }: Condition, token: SubjectToken): string {
  const view = activationOf(token, usesClaims)
  if (isRefusal(view)) return ''
  const clauses = new Set<string>()
  let nanosecondsLeft = conditionNanosecondsMax
  const addClauses = (operand: ASTNode): void => {
    for (const [part, node] of partsOf(operand, source)) {
      nanosecondsLeft -= estimateNanoseconds(node)
      if (nanosecondsLeft < 0 || [...clauses].join().length > claimCharactersMax) return
      const { value, error } = explainPart(part, node, source, view)
      if (part !== 'claims') clauses.add(error === undefined ? `${part} is ${value}` : `${part} fails: ${error}`)
    }
  }
  const operands = decidingOperandsOf(ast).slice(0, explainedPartsMax)
  const holding = new Set(operands.filter((operand) => isTrue(operand, source, view)))
  for (const operand of operands) if (!holding.has(operand)) addClauses(operand)
  for (const operand of holding) addClauses(operand)
  return [...clauses].join('; ')
}

/**
 * Measures how much of a condition holds, from 0 to 1: the mean of operands joined by &&, the maximum of operands
 * joined by ||. `known` caches the results of operands for this token, because policies of one issuer often share them.
 */
export function measureHeld(
  { source, ast, usesClaims }: Condition,
  token: SubjectToken,
  known: Map<string, boolean>,
): number {
  const view = activationOf(token, usesClaims)
  if (isRefusal(view)) return 0
  const measure = (node: ASTNode): number => {
    if (node.op === '&&') {
      const operands = operandsOf(node)
      return operands.reduce((sum, operand) => sum + measure(operand), 0) / operands.length
    }
    if (node.op === '||') return Math.max(...operandsOf(node).map(measure))
    const text = source.slice(node.start, node.end)
    const holds = known.get(text) ?? isTrue(node, source, view)
    known.set(text, holds)
    return Number(holds)
  }
  return measure(ast)
}

function isTrue(node: ASTNode, source: string, view: ConditionView): boolean {
  try {
    return prepare(node, source)(view) === true
  } catch {
    return false
  }
}

function explainPart(part: string, node: ASTNode, source: string, view: ConditionView): SubExpression {
  try {
    return { source: part, value: textOf(prepare(node, source)(view)) }
  } catch (error) {
    return { source: part, error: describeEvaluationError(error) }
  }
}

/**
 * Returns the operands of a chain of && or ||, with or without parentheses inside, or the node itself if it is not a
 * chain.
 */
function operandsOf(node: ASTNode, op = node.op): ASTNode[] {
  const isChain = node.op === op && (op === '&&' || op === '||')
  return isChain ? (node.args as ASTNode[]).flatMap((operand) => operandsOf(operand, op)) : [node]
}

/** Returns the operands that && and || join to the whole condition. */
function decidingOperandsOf(node: ASTNode): ASTNode[] {
  const operands = operandsOf(node)
  return operands.length === 1 ? [node] : operands.flatMap(decidingOperandsOf)
}

/** Returns the parts of a node by source, smallest first, ending with the node itself. */
function partsOf(node: ASTNode, source: string): Map<string, ASTNode> {
  const parts = new Map<string, ASTNode>()
  collectParts(node, source, blankTexts(node, source), parts)
  return parts
}

function collectParts(node: ASTNode, source: string, blanked: string, parts: Map<string, ASTNode>): void {
  if (node.op === 'value') return
  for (const child of outerChildren(node)) collectParts(child, source, blanked, parts)
  const part = ownTextOf(node, source, blanked)
  if (!parts.has(part)) parts.set(part, node)
}

/** Returns the source of a part. The engine's ranges omit the parentheses around a first or last operand. */
function ownTextOf(node: ASTNode, source: string, blanked: string): string {
  let { start, end } = node
  let [opened, closed] = [0, 0]
  for (const character of blanked.slice(start, end)) {
    if (character === '(') opened++
    else if (character === ')' && opened > 0) opened--
    else if (character === ')') closed++
  }
  for (; closed > 0; closed--) start = Math.max(0, blanked.lastIndexOf('(', start - 1))
  for (; opened > 0; opened--) end = blanked.indexOf(')', end) + 1
  return source.slice(start, end)
}

/**
 * Returns a source of the same length with strings and comments blanked, so that every remaining parenthesis belongs to
 * the expression.
 */
function blankTexts(ast: ASTNode, source: string): string {
  const characters = source.split('')
  const blank = (node: ASTNode): void => {
    if (node.op === 'value' && typeof node.args === 'string') characters.fill(' ', node.start, node.end)
    for (const child of childrenOf(node)) blank(child)
  }
  blank(ast)
  return characters.join('').replaceAll(/\/\/[^\n]*/g, (comment) => ' '.repeat(comment.length))
}

/** Returns the direct children of a node, except those inside a macro or has(). */
function outerChildren(node: ASTNode): ASTNode[] {
  if (node.op === 'call') return node.args[0] === 'has' ? [] : node.args[1]
  if (node.op === 'rcall') return macros.includes(node.args[0]) ? [node.args[1]] : [node.args[1], ...node.args[2]]
  const operands = operandsOf(node)
  return operands.length > 1 ? operands : childrenOf(node)
}

/** Returns all direct children of a node. */
export function childrenOf({ args }: ASTNode): ASTNode[] {
  const below: unknown[] = Array.isArray(args) ? args.flat(2) : [args]
  return below.filter((each): each is ASTNode => typeof each === 'object' && each !== null && 'op' in each)
}

/**
 * Returns JSON, cut to the length that is shown: a value that refers to another value many times can be far larger than
 * its parts.
 */
function textOf(value: unknown): string {
  let text = ''
  const write = (each: unknown): void => {
    if (Array.isArray(each)) writeAll('[', each, ']')
    else if (each instanceof Map) writeAll('{', each, '}')
    else if (typeof each === 'string') text += JSON.stringify(withoutSecrets(each).slice(0, explainedCharactersMax + 1))
    else text += String(each)
  }
  const writeAll = (opening: string, members: unknown[] | Map<unknown, unknown>, closing: string): void => {
    let isFirst = true
    text += opening
    for (const [key, each] of members.entries()) {
      if (text.length > explainedCharactersMax) return
      if (!isFirst) text += ','
      isFirst = false
      if (members instanceof Map) text += `${JSON.stringify(String(key))}:`
      write(each)
    }
    text += closing
  }
  write(value)
  return cutToShow(text)
}
