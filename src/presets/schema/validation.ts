// Checks a request body and collects its problems, ten at most, each with its path and rule. It stops there: arktype collects all of them,
// and 300,000 wrong items take it seconds.
import { presetBodyDepthMax, presetProblemsMax } from '../../limits.ts'
import type { JsonSchema } from '../../values/shape.ts'
import type { Fields } from './fields.ts'

/** Where in the body, as `tools[0].function.name`, and which rule it breaks. The value that was sent is not repeated. */
export type Problem = { path: string; rule: string }

export type ValidationContext = { at: (string | number)[]; problems: Problem[] }
export type Validate = (value: unknown, context: ValidationContext) => void
/** A rule as a function and in JSON Schema; a rule that JSON Schema cannot express is in its description. */
export type Check = Validate & { readonly schema: JsonSchema }

/** A schema that is a function is made when it is first read: only the OpenAPI document needs it, and a start does not. */
export function createCheck(schema: JsonSchema | (() => JsonSchema), validate: Validate): Check {
  if (typeof schema !== 'function') return Object.assign(validate, { schema })
  let made: JsonSchema | undefined
  const get = () => {
    made ??= schema()
    return made
  }
  return Object.defineProperty(validate, 'schema', { get }) as Check
}

/** All problems of a body in the order of its shape's fields, ten at most; none when the body is valid. Unknown fields are ignored. */
export function problemsOf(body: Fields, shape: Check): Problem[] {
  if (isDeeper(body, presetBodyDepthMax))
    return [{ path: 'body', rule: `must be nested at most ${presetBodyDepthMax} levels deep` }]
  const context: ValidationContext = { at: [], problems: [] }
  shape(body, context)
  return context.problems
}

/** All problems in one line: `metadata.trace_id: must be at most 512 characters; top_p: …`. */
export function describeProblems(problems: readonly Problem[]): string {
  return problems.map(({ path, rule }) => `${path}: ${rule}`).join('; ')
}

/** Records a problem at the current path, unless ten are recorded. */
export function report({ at, problems }: ValidationContext, rule: string): void {
  if (problems.length < presetProblemsMax) problems.push({ path: at.reduce(appendKey, '') as string, rule })
}

/** Runs `validate` one level deeper in the path. */
export function within(key: string | number, validate: () => void, context: ValidationContext): void {
  context.at.push(key)
  validate()
  context.at.pop()
}

export function isFull({ problems }: ValidationContext): boolean {
  return problems.length >= presetProblemsMax
}

export function isValid(value: unknown, check: Check): boolean {
  const context: ValidationContext = { at: [], problems: [] }
  check(value, context)
  return context.problems.length === 0
}

function appendKey(path: string | number, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`
  const name = key.length > 64 ? `${key.slice(0, 64)}…` : key
  if (!/^[\w…-]+$/.test(name)) return `${path}[${JSON.stringify(name)}]`
  return path === '' ? name : `${path}.${name}`
}

/** In plain loops: a body may hold a million values. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value)
  for (const member of members) if (isDeeper(member, levels - 1)) return true
  return false
}
