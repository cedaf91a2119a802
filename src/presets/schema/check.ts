// The words in which the shapes of request bodies are told, and the judge that holds a body against them: it names every problem by
// path and rule, up to ten, and stops there. arktype collects without end: 300,000 wrong items take it seconds.
import { presetBodyDepthMax, presetProblemsMax } from '../../limits.ts'
import type { JsonSchema } from '../../values/shape.ts'
import {
  type Bounds,
  listSchema,
  mergedSchema,
  numberSchema,
  objectSchema,
  recordSchema,
  textSchema,
  variantsSchema,
} from './json-schema.ts'

export type Fields = Record<string, unknown>

/** Where in the body, as `tools[0].function.name`, and what must hold there. The value that was sent is not repeated. */
export type Problem = { path: string; rule: string }

type ValidationContext = { at: (string | number)[]; problems: Problem[] }
type Judge = (value: unknown, context: ValidationContext) => void
/** A judge with its rule in JSON Schema; what that cannot say is in its description. */
export type Check = Judge & { readonly schema: JsonSchema }

/** A field that may be left out; a null is treated as absent (reference: Preset parameters). */
export type Shape = Record<string, Check | { required: Check }>

/** All problems of a body in the order of its shape's fields, ten at most; none when it is as the shape tells. Unknown fields are ignored. */
export function problemsOf(body: Fields, shape: Check): Problem[] {
  if (isDeeper(body, presetBodyDepthMax))
    return [{ path: 'body', rule: `must be nested at most ${presetBodyDepthMax} levels deep` }]
  const context: ValidationContext = { at: [], problems: [] }
  shape(body, context)
  return context.problems
}

function check(schema: JsonSchema, judge: Judge): Check {
  return Object.assign(judge, { schema })
}

/** The same check under a name of its own in the OpenAPI document. */
export function named(title: string, judge: Check): Check {
  return check({ title, ...judge.schema }, (value, context) => judge(value, context))
}

export const flag = check({ type: 'boolean' }, (value, context) => {
  if (typeof value !== 'boolean') report(context, 'must be true or false')
})

export const anything = check({}, () => {})

/** Any object, its members free. */
export const freeObject = check({ type: 'object' }, (value, context) => {
  if (!isObject(value)) report(context, 'must be an object')
})

/** Bounds count Unicode code points. */
export function text(bounds: Bounds = {}): Check {
  const { min = 0, max = Number.POSITIVE_INFINITY } = bounds
  return check(textSchema(bounds), (value, context) => {
    if (typeof value !== 'string') report(context, 'must be text')
    else if (value.length < min) report(context, 'must not be empty')
    else if (isLonger(value, max)) report(context, `must be at most ${max} characters`)
  })
}

/** Text of one form. */
export function matching(form: RegExp, rule: string): Check {
  return check({ type: 'string', pattern: form.source }, (value, context) => {
    if (typeof value !== 'string' || !form.test(value)) report(context, rule)
  })
}

export function number(bounds: Bounds = {}): Check {
  const rule = `must be a number${range(bounds)}`
  return check(numberSchema('number', bounds), (value, context) => {
    if (typeof value !== 'number' || !Number.isFinite(value) || !isWithin(value, bounds)) report(context, rule)
  })
}

/** A whole number that JavaScript holds exactly. */
export function integer(bounds: Bounds = {}): Check {
  const rule = `must be an integer${range(bounds)}`
  const schema = numberSchema('integer', { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER, ...bounds })
  return check(schema, (value, context) => {
    if (!Number.isSafeInteger(value) || !isWithin(value as number, bounds)) report(context, rule)
  })
}

export function oneOf(...values: readonly string[]): Check {
  const rule = values.length === 1 ? `must be ${values[0]}` : `must be one of ${values.join(', ')}`
  return check({ enum: values }, (value, context) => {
    if (!values.includes(value as string)) report(context, rule)
  })
}

export function list(item: Check, bounds: Bounds = {}): Check {
  const { min = 0, max = Number.POSITIVE_INFINITY } = bounds
  return check(listSchema(item, bounds), (value, context) => {
    if (!Array.isArray(value)) return report(context, 'must be a list')
    if (value.length < min) return report(context, `must have at least ${min} item${min === 1 ? '' : 's'}`)
    if (value.length > max) return report(context, `must have at most ${max} items`)
    for (let index = 0; index < value.length && !isFull(context); index++)
      within(index, () => item(value[index], context), context)
  })
}

export function object(shape: Shape): Check {
  const fields = Object.entries(shape).map(([name, field]) =>
    typeof field === 'function'
      ? { name, judge: field, required: false }
      : { name, judge: field.required, required: true },
  )
  return check(objectSchema(shape), (value, context) => {
    if (!isObject(value)) return report(context, 'must be an object')
    for (const { name, judge, required } of fields) {
      if (isFull(context)) return
      const member = memberOf(value, name)
      if (member !== undefined) within(name, () => judge(member, context), context)
      else if (required) within(name, () => report(context, 'is required'), context)
    }
  })
}

/** An object whose keys the caller chooses. */
export function record(member: Check, bounds: { pairsMax?: number; keyMax?: number } = {}): Check {
  const { pairsMax = Number.POSITIVE_INFINITY, keyMax = Number.POSITIVE_INFINITY } = bounds
  return check(recordSchema(member, bounds), (value, context) => {
    if (!isObject(value)) return report(context, 'must be an object')
    const values = Object.values(value)
    if (values.length > pairsMax) return report(context, `must have at most ${pairsMax} pairs`)
    // Spelling out tens of thousands of numbers that are keys takes longer than everything else here.
    if (keyMax === Number.POSITIVE_INFINITY && values.every((item) => fits(item, member))) return
    for (const [index, key] of Object.keys(value).entries()) {
      if (isFull(context)) return
      const item = values[index]
      if (isLonger(key, keyMax))
        within(key, () => report(context, `must have a key of at most ${keyMax} characters`), context)
      else if (!fits(item, member)) within(key, () => member(item, context), context)
    }
  })
}

/** What variants are not told by their names: the shape of every other one, and the name of one that leaves the member out. */
export type Unnamed = { otherwise?: Shape; absent?: string }

/** Objects told apart by one member, as plugins by `id` and tools by `type`. */
export function variants(by: string, shapes: Record<string, Shape>, unnamed: Unnamed = {}): Check {
  const checks = new Map(Object.entries(shapes).map(([name, shape]) => [name, object(shape)]))
  const known = oneOf(...checks.keys())
  const other = unnamed.otherwise === undefined ? undefined : object(unnamed.otherwise)
  return check(variantsSchema(by, shapes, unnamed), (value, context) => {
    if (!isObject(value)) return report(context, 'must be an object')
    const name = memberOf(value, by) ?? unnamed.absent
    const judge = checks.get(name as string) ?? other
    if (judge !== undefined) judge(value, context)
    else if (name === undefined) within(by, () => report(context, 'is required'), context)
    else within(by, () => known(name, context), context)
  })
}

/** Text in short, or the long form. */
export function textOr(other: Check, what: string): Check {
  return check({ anyOf: [{ type: 'string' }, other.schema] }, (value, context) => {
    if (typeof value === 'object' && value !== null) other(value, context)
    else if (typeof value !== 'string') report(context, `must be text or ${what}`)
  })
}

/** The same where the short form is no text, or not any. */
export function shortOr(short: Check, long: Check): Check {
  return check({ anyOf: [short.schema, long.schema] }, (value, context) =>
    typeof value === 'object' ? long(value, context) : short(value, context),
  )
}

/** One after the other, until one of them finds a problem. */
export function sequence(...checks: readonly Check[]): Check {
  return check(mergedSchema(checks), (value, context) => {
    const before = context.problems.length
    for (const judge of checks) if (context.problems.length === before) judge(value, context)
  })
}

/** All of them, whatever the others find. */
export function allOf(...checks: readonly Check[]): Check {
  return check(mergedSchema(checks), (value, context) => {
    for (const judge of checks) judge(value, context)
  })
}

/** What several fields of one object say together; the rule is told of the field named. */
export function crossField(name: string, holds: (fields: Fields) => boolean, rule: string): Check {
  return check({ description: `${name} ${rule}.` }, (value, context) => {
    if (!isObject(value) || holds(value)) return
    within(name, () => report(context, rule), context)
  })
}

/** A check of one's own: the rule is told where the predicate does not hold. */
export function refine(holds: (value: unknown) => boolean, rule: string, schema: JsonSchema): Check {
  return check(schema, (value, context) => {
    if (!holds(value)) report(context, rule)
  })
}

/** `metadata.trace_id: must be at most 512 characters`, one after the other. */
export function describeProblems(problems: readonly Problem[]): string {
  return problems.map(({ path, rule }) => `${path}: ${rule}`).join('; ')
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A member of its own that is neither left out nor null (reference: Preset parameters). */
export function memberOf(value: Fields, name: string): unknown {
  return Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined
}

/** The members that are there. */
export function omitUndefined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function report({ at, problems }: ValidationContext, rule: string): void {
  if (problems.length < presetProblemsMax) problems.push({ path: at.reduce(step, '') as string, rule })
}

function step(path: string | number, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`
  const name = key.length > 64 ? `${key.slice(0, 64)}…` : key
  if (!/^[\w…-]+$/.test(name)) return `${path}[${JSON.stringify(name)}]`
  return path === '' ? name : `${path}.${name}`
}

function within(key: string | number, judge: () => void, context: ValidationContext): void {
  context.at.push(key)
  judge()
  context.at.pop()
}

function fits(value: unknown, judge: Check): boolean {
  const context: ValidationContext = { at: [], problems: [] }
  judge(value, context)
  return context.problems.length === 0
}

function isFull({ problems }: ValidationContext): boolean {
  return problems.length >= presetProblemsMax
}

function isWithin(value: number, { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY }: Bounds): boolean {
  return value >= min && value <= max
}

function range({ min, max }: Bounds): string {
  if (min === undefined) return max === undefined ? '' : ` of at most ${max}`
  return max === undefined ? ` of at least ${min}` : ` from ${min} to ${max}`
}

/** Counted in Unicode code points, which takes time only where the UTF-16 length leaves it open. */
export function isLonger(value: string, max: number): boolean {
  return value.length > max && (value.length > 2 * max || [...value].length > max)
}

/** In plain loops: a body may hold a million values. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value)
  for (const member of members) if (isDeeper(member, levels - 1)) return true
  return false
}
