// The values of a condition's parts for a token: for an admin who asks, for the audit of a refused exchange, and to find the policy that is
// closest to accepting a token. It decides nothing.
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
import { macros } from './rules.ts'

export type SubExpression = { source: string; value?: string; error?: string }

/**
 * What each part of a condition is for a token, smallest parts first, one by one: who takes them may give way in between. Literals, and what
 * stands inside a macro, where its variable has many values, are left out, and so are parts that together could take much longer than the
 * condition itself.
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
 * Why a condition is false, for the audit: first the operands that do not hold, each after its own parts, then the others, in no more than
 * about the characters that the audit keeps.
 */
export function explainFalse({ source, ast, usesClaims }: Condition, token: SubjectToken): string {
  const view = activationOf(token, usesClaims)
  if (isRefusal(view)) return ''
  const told = new Set<string>()
  let nanosecondsLeft = conditionNanosecondsMax
  const tell = (operand: ASTNode): void => {
    for (const [part, node] of partsOf(operand, source)) {
      nanosecondsLeft -= estimateNanoseconds(node)
      if (nanosecondsLeft < 0 || [...told].join().length > claimCharactersMax) return
      const { value, error } = explainPart(part, node, source, view)
      if (part !== 'claims') told.add(error === undefined ? `${part} is ${value}` : `${part} fails: ${error}`)
    }
  }
  const operands = decidingOperandsOf(ast).slice(0, explainedPartsMax)
  const holding = new Set(operands.filter((operand) => isTrue(operand, source, view)))
  for (const operand of operands) if (!holding.has(operand)) tell(operand)
  for (const operand of holding) tell(operand)
  return [...told].join('; ')
}

/**
 * How much of a condition holds, from 0 to 1: of operands that are joined by && the mean, of those joined by || the most. `known` keeps what
 * operands were for this very token, since policies of one issuer often share them.
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

/** The operands of a chain of && or ||, brackets around parts of the chain or not; the node itself where it is none. */
function operandsOf(node: ASTNode, op = node.op): ASTNode[] {
  const isChain = node.op === op && (op === '&&' || op === '||')
  return isChain ? (node.args as ASTNode[]).flatMap((operand) => operandsOf(operand, op)) : [node]
}

/** The operands that && and || join to the whole. */
function decidingOperandsOf(node: ASTNode): ASTNode[] {
  const operands = operandsOf(node)
  return operands.length === 1 ? [node] : operands.flatMap(decidingOperandsOf)
}

/** The parts of a node by their source, smallest first, the node itself last. */
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

/** The source of a part. The engine's ranges leave out the parentheses around a first or last operand. */
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

/** A source of the same length with strings and comments blanked, so that the remaining parentheses belong to the expression. */
function blankTexts(ast: ASTNode, source: string): string {
  const characters = source.split('')
  const blank = (node: ASTNode): void => {
    if (node.op === 'value' && typeof node.args === 'string') characters.fill(' ', node.start, node.end)
    for (const child of childrenOf(node)) blank(child)
  }
  blank(ast)
  return characters.join('').replaceAll(/\/\/[^\n]*/g, (comment) => ' '.repeat(comment.length))
}

/** The direct children of a node, without those inside a macro or inside has(). */
function outerChildren(node: ASTNode): ASTNode[] {
  if (node.op === 'call') return node.args[0] === 'has' ? [] : node.args[1]
  if (node.op === 'rcall') return macros.includes(node.args[0]) ? [node.args[1]] : [node.args[1], ...node.args[2]]
  const operands = operandsOf(node)
  return operands.length > 1 ? operands : childrenOf(node)
}

/** All direct children of a node. */
function childrenOf({ args }: ASTNode): ASTNode[] {
  const below: unknown[] = Array.isArray(args) ? args.flat(2) : [args]
  return below.filter((each): each is ASTNode => typeof each === 'object' && each !== null && 'op' in each)
}

/** JSON, cut to what is shown: a value that refers to another one many times can be far larger than its parts. */
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
