// A policy's condition (interface §2.4, decisions §4): compiled and bounded when it is saved, evaluated at every exchange. The same
// compiled value serves both, so they cannot disagree.
import { type ASTNode, EvaluationError, type ParseError, type ParseResult } from '@marcbachmann/cel-js'
import {
  conditionCharactersMax,
  conditionNanosecondsMax,
  explainedCharactersMax,
  explainedNanosecondsMax,
  explainedPartsMax,
} from '../limits.ts'
import type { SubjectToken } from './claims.ts'
import { estimateNanoseconds } from './condition-cost.ts'
import { parseSource, prepare } from './condition-engine.ts'
import { type ConditionView, viewOf } from './condition-input.ts'
import { type ConditionFault, findForbidden, macros } from './condition-rules.ts'
import { isRefusal, type Refusal, refuse } from './refusal.ts'

/**
 * What a condition means: the engine, its options and the allow list. It is stored beside each condition and goes up when a change of
 * these could change a verdict; a condition of another version is then refused until its admin saves it again.
 */
export const conditionEnvironment = 1

/** A condition that passed every check. Opaque: only `compileCondition` makes one. */
export type Condition = Readonly<{
  source: string
  ast: ASTNode
  usesClaims: boolean
  evaluate: (view: ConditionView) => unknown
}>

/** Length, syntax, allow list, types, result, worst case: a condition, or the first thing that is wrong with it. */
export function compileCondition(source: string): Condition | ConditionFault {
  const whole = { start: 0, end: source.length }
  if ([...source].length > conditionCharactersMax)
    return { ...whole, message: `A condition has at most ${conditionCharactersMax} characters` }
  const parsed = parse(source)
  if ('message' in parsed) return parsed
  const { ast } = parsed
  const forbidden = findForbidden(ast)
  if (forbidden !== undefined) return forbidden
  const { valid, type, error } = parsed.check()
  if (!valid) return faultFrom(error, source)
  if (type !== 'bool') {
    const hint = type === 'dyn' ? 'compare it, as in claims.admin == true' : 'compare it with == or another operator'
    return { ...whole, message: `The result must be true or false, not ${type}`, hint }
  }
  if (!(estimateNanoseconds(ast) <= conditionNanosecondsMax)) {
    const hint = 'compare fewer or shorter values; chained macros and contains() with a claim on both sides cost most'
    return { ...whole, message: 'It could take too long on a large token', hint }
  }
  const prepared = attempt(() => prepare(ast, source), source)
  if ('message' in prepared) return { ...prepared, ...whole }
  return Object.freeze({ source, ast, usesClaims: /\bclaims\b/.test(source), evaluate: prepared })
}

export function isConditionFault(value: Condition | ConditionFault): value is ConditionFault {
  return 'message' in value
}

/** Undefined when the condition is true. An error is neither true nor false, and says so. */
export function checkCondition(condition: Condition, token: SubjectToken): Refusal | undefined {
  const view = viewOf(token, condition.usesClaims)
  if (isRefusal(view)) return view
  try {
    const result = condition.evaluate(view)
    if (result === true) return undefined
    return result === false ? refuse('condition_false') : refuse('condition_error', 'The result is not true or false')
  } catch (error) {
    return refuse('condition_error', explain(error))
  }
}

export type SubExpression = { source: string; value?: string; error?: string }

/**
 * What each part of a condition is for a token, smallest parts first. Literals, and what stands inside a macro, where its variable has
 * many values, are left out, and so are parts that together could take much longer than the condition itself.
 */
export function explainCondition({ source, ast, usesClaims }: Condition, token: SubjectToken): SubExpression[] {
  const view = viewOf(token, usesClaims)
  if (isRefusal(view)) return []
  const parts = new Map<string, ASTNode>()
  collectParts(ast, source, blankTexts(ast, source), parts)
  let nanosecondsLeft = explainedNanosecondsMax - estimateNanoseconds(ast)
  const shown = [...parts].slice(0, explainedPartsMax).filter(([, part]) => {
    if (part === ast) return true
    const nanoseconds = estimateNanoseconds(part)
    if (nanoseconds > nanosecondsLeft) return false
    nanosecondsLeft -= nanoseconds
    return true
  })
  return shown.map(([part, node]) => {
    try {
      return { source: part, value: textOf(prepare(node, source)(view)) }
    } catch (error) {
      return { source: part, error: explain(error) }
    }
  })
}

function collectParts(node: ASTNode, source: string, blanked: string, parts: Map<string, ASTNode>): void {
  if (node.op === 'value') return
  for (const child of outerChildren(node)) collectParts(child, source, blanked, parts)
  const part = ownTextOf(node, source, blanked)
  if (!parts.has(part)) parts.set(part, node)
}

/** The admin's own text of a part. The engine's ranges leave out the brackets around a first or last operand. */
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

/** A source of the same length without what stands in texts and comments, so that the brackets left are those of the expression. */
function blankTexts(ast: ASTNode, source: string): string {
  const characters = source.split('')
  const blank = (node: ASTNode): void => {
    if (node.op === 'value' && typeof node.args === 'string') characters.fill(' ', node.start, node.end)
    for (const child of childrenOf(node)) blank(child)
  }
  blank(ast)
  return characters.join('').replaceAll(/\/\/[^\n]*/g, (comment) => ' '.repeat(comment.length))
}

/** The nodes directly below one, without what stands inside a macro or names a member that has() asks for. */
function outerChildren(node: ASTNode): ASTNode[] {
  if (node.op === 'call') return node.args[0] === 'has' ? [] : node.args[1]
  if (node.op === 'rcall') return macros.includes(node.args[0]) ? [node.args[1]] : [node.args[1], ...node.args[2]]
  return childrenOf(node)
}

/** All nodes directly below one, wherever in its arguments they are. */
function childrenOf({ args }: ASTNode): ASTNode[] {
  const below: unknown[] = Array.isArray(args) ? args.flat(2) : [args]
  return below.filter((each): each is ASTNode => typeof each === 'object' && each !== null && 'op' in each)
}

/** As JSON, no farther than it is shown: a value that names another one many times can be far larger than its parts. */
function textOf(value: unknown): string {
  let text = ''
  const write = (each: unknown): void => {
    if (Array.isArray(each)) writeAll('[', each, ']')
    else if (each instanceof Map) writeAll('{', each, '}')
    else if (typeof each === 'string') text += JSON.stringify(each.slice(0, explainedCharactersMax + 1))
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
  return bounded(text)
}

function bounded(text: string): string {
  return text.length <= explainedCharactersMax ? text : `${text.slice(0, explainedCharactersMax)}…`
}

function parse(source: string): ParseResult | ConditionFault {
  return attempt(() => parseSource(source), source)
}

function attempt(run: () => ParseResult, source: string): ParseResult | ConditionFault {
  try {
    return run()
  } catch (error) {
    return faultFrom(error, source)
  }
}

function faultFrom(error: unknown, source: string): ConditionFault {
  const { summary, range } = error as ParseError
  const { start, end } = range ?? { start: 0, end: source.length }
  return { message: summary ?? String(error), start, end }
}

/** What went wrong in a few words, with what an admin does about the usual two. */
function explain(error: unknown): string {
  if (!(error instanceof EvaluationError)) return 'It could not be evaluated'
  const summary = bounded(error.summary)
  if (error.code === 'no_such_key') return `${summary}; ask has(…) first`
  return error.code === 'no_such_overload' || error.code === 'no_matching_overload'
    ? `${summary}; a number in a claim is a double: int(claims.iat) + 1`
    : summary
}

/** The fault with its line, a caret below the place, and the hint. Lines and columns count from 1, columns in characters. */
export function describeConditionFault(source: string, { message, start, end, hint }: ConditionFault): string {
  const before = source.slice(0, start).split('\n')
  const line = before.length
  const lead = [...(before.at(-1) ?? '')]
  const text = source.split('\n')[line - 1] ?? ''
  const marked = [
    ...source.slice(start, Math.min(end, start + Math.max(1, text.length - (before.at(-1) ?? '').length))),
  ]
  const caret = `${' '.repeat(lead.length)}${'^'.repeat(Math.max(1, marked.length))}`
  const told = `line ${line}, column ${lead.length + 1}: ${message}${hint === undefined ? '' : ` (${hint})`}`
  return `${told}\n  ${text.replaceAll('\t', ' ')}\n  ${caret}`
}
