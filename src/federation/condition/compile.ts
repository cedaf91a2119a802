// The condition of a policy (reference: Condition): compiled and bounded when it is saved, evaluated at every exchange.
// Both use the same compiled value, so they cannot disagree.
import type { ASTNode, ParseError, ParseResult } from '@marcbachmann/cel-js'
import { conditionCharactersMax, conditionNanosecondsMax, explainedCharactersMax } from '../../limits.ts'
import { isLonger } from '../../values/characters.ts'
import type { SubjectToken } from '../subject-token/claims.ts'
import { isRefusal, type Refusal, refuse } from '../subject-token/refusal.ts'
import { activationOf, type ConditionView } from './activation.ts'
import { estimateNanoseconds } from './cost.ts'
import { parseSource, prepare } from './engine.ts'
import { celLibrary } from './library.ts'
import { type ConditionFault, findForbidden } from './permitted.ts'

/**
 * The version of the engine, its options and the allow list together. It is stored with each condition. Increase it
 * when a change of these could change a result; a condition saved under another version is refused until its admin
 * saves it again.
 */
export const conditionEnvironment = 1

/** An expression that passed every check. It is opaque: only this file creates one. */
export type Condition = Readonly<{
  source: string
  ast: ASTNode
  usesClaims: boolean
  evaluate: (view: ConditionView) => unknown
}>

/** What an expression must return, and what an author of another one can do. `dyn` is a claim, whose type is not known. */
type ResultRule = {
  name: string
  types: readonly string[]
  message: (type: string) => string
  hint: (type: string) => string
}

const trueOrFalse: ResultRule = {
  name: 'A condition',
  types: ['bool'],
  message: (type) => `The result must be true or false, not ${type}`,
  hint: (type) =>
    type === 'dyn' ? 'compare it, as in claims.admin == true' : 'compare it with == or another operator',
}
const text: ResultRule = {
  name: 'An attribution',
  types: ['string', 'dyn'],
  message: (type) => `The result must be a string, not ${type}`,
  hint: () => 'name a claim, as in claims.repository_id, or convert the value with string()',
}

/**
 * Checks length, syntax, allow list, types, result type and worst-case cost. Returns the condition or the first
 * problem.
 */
export function compileCondition(source: string): Condition | ConditionFault {
  return compile(source, trueOrFalse)
}

/** The same for an expression that returns a string, such as `claims.repository_id`. */
export function compileText(source: string): Condition | ConditionFault {
  return compile(source, text)
}

function compile(source: string, result: ResultRule): Condition | ConditionFault {
  const whole = { start: 0, end: source.length }
  if (isLonger(source, conditionCharactersMax))
    return { ...whole, message: `${result.name} has at most ${conditionCharactersMax} characters` }
  const parsed = parse(source)
  if ('message' in parsed) return parsed
  const { ast } = parsed
  const forbidden = findForbidden(ast)
  if (forbidden !== undefined) return forbidden
  const { valid, type, error } = parsed.check()
  if (!valid) return faultFrom(error, source)
  if (type === undefined || !result.types.includes(type))
    return { ...whole, message: result.message(String(type)), hint: result.hint(String(type)) }
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

/** Returns undefined if the condition is true. An error is neither true nor false and has its own reason. */
export function checkCondition(condition: Condition, token: SubjectToken): Refusal | undefined {
  const view = activationOf(token, condition.usesClaims)
  if (isRefusal(view)) return view
  try {
    const result = condition.evaluate(view)
    if (result === true) return undefined
    return result === false ? refuse('condition_false') : refuse('condition_error', 'The result is not true or false')
  } catch (error) {
    return refuse('condition_error', describeEvaluationError(error))
  }
}

/** Cuts text to the length that an explanation shows. */
export function cutToShow(text: string): string {
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

/** Describes the error briefly; for the two common errors, adds what to do. */
export function describeEvaluationError(error: unknown): string {
  if (!(error instanceof celLibrary().EvaluationError)) return 'It could not be evaluated'
  const summary = cutToShow(error.summary)
  if (error.code === 'no_such_key') return `${summary}; ask has(…) first`
  return error.code === 'no_such_overload' || error.code === 'no_matching_overload'
    ? `${summary}; a number in a claim is a double: int(claims.iat) + 1`
    : summary
}

/**
 * Describes the fault with its line, a caret below its position, and the hint. Lines and columns count from 1; columns
 * count characters.
 */
export function describeConditionFault(source: string, { message, start, end, hint }: ConditionFault): string {
  const before = source.slice(0, start).split('\n')
  const line = before.length
  const lead = [...(before.at(-1) ?? '')]
  const text = source.split('\n')[line - 1] ?? ''
  const marked = [
    ...source.slice(start, Math.min(end, start + Math.max(1, text.length - (before.at(-1) ?? '').length))),
  ]
  const caret = `${' '.repeat(lead.length)}${'^'.repeat(Math.max(1, marked.length))}`
  const position = `line ${line}, column ${lead.length + 1}: ${message}${hint === undefined ? '' : ` (${hint})`}`
  return `${position}\n  ${text.replaceAll('\t', ' ')}\n  ${caret}`
}
