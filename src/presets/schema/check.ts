// The vocabulary in which the shapes of request bodies are written. Each word makes a check from a rule: `text({ max: 256 })`.
import { isLonger } from '../../values/characters.ts'
import type { JsonSchema } from '../../values/shape.ts'
import { type Fields, isObject, memberOf } from './fields.ts'
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
import { type Check, createCheck, isFull, isValid, report, within } from './validation.ts'

/** The fields of an object. A field may be absent or null unless it is `required` (reference: Preset parameters). */
export type Shape = Record<string, Check | { required: Check }>

/** The same check, under a name in the OpenAPI document. */
export function named(title: string, validate: Check): Check {
  const schema = () => ({ title, ...validate.schema })
  return createCheck(schema, (value, context) => validate(value, context))
}

export const flag = createCheck({ type: 'boolean' }, (value, context) => {
  if (typeof value !== 'boolean') report(context, 'must be true or false')
})

export const anything = createCheck({}, () => {})

/** An object with any members. */
export const freeObject = createCheck({ type: 'object' }, (value, context) => {
  if (!isObject(value)) report(context, 'must be an object')
})

/** Bounds count Unicode code points. */
export function text(bounds: Bounds = {}): Check {
  const { min = 0, max = Number.POSITIVE_INFINITY } = bounds
  const schema = () => textSchema(bounds)
  return createCheck(schema, (value, context) => {
    if (typeof value !== 'string') report(context, 'must be text')
    else if (value.length < min) report(context, 'must not be empty')
    else if (isLonger(value, max)) report(context, `must be at most ${max} characters`)
  })
}

/** Text that matches a pattern. */
export function matching(pattern: RegExp, rule: string): Check {
  return createCheck({ type: 'string', pattern: pattern.source }, (value, context) => {
    if (typeof value !== 'string' || !pattern.test(value)) report(context, rule)
  })
}

export function number(bounds: Bounds = {}): Check {
  const rule = `must be a number${range(bounds)}`
  const schema = () => numberSchema('number', bounds)
  return createCheck(schema, (value, context) => {
    if (typeof value !== 'number' || !Number.isFinite(value) || !isWithin(value, bounds)) report(context, rule)
  })
}

/** A whole number that JavaScript holds exactly. */
export function integer(bounds: Bounds = {}): Check {
  const rule = `must be an integer${range(bounds)}`
  const schema = () =>
    numberSchema('integer', { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER, ...bounds })
  return createCheck(schema, (value, context) => {
    if (!Number.isSafeInteger(value) || !isWithin(value as number, bounds)) report(context, rule)
  })
}

export function oneOf(...values: readonly string[]): Check {
  const rule = values.length === 1 ? `must be ${values[0]}` : `must be one of ${values.join(', ')}`
  return createCheck({ enum: values }, (value, context) => {
    if (!values.includes(value as string)) report(context, rule)
  })
}

export function list(item: Check, bounds: Bounds = {}): Check {
  const { min = 0, max = Number.POSITIVE_INFINITY } = bounds
  const schema = () => listSchema(item, bounds)
  return createCheck(schema, (value, context) => {
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
      ? { name, validate: field, required: false }
      : { name, validate: field.required, required: true },
  )
  const schema = () => objectSchema(shape)
  return createCheck(schema, (value, context) => {
    if (!isObject(value)) return report(context, 'must be an object')
    for (const { name, validate, required } of fields) {
      if (isFull(context)) return
      const member = memberOf(value, name)
      if (member !== undefined) within(name, () => validate(member, context), context)
      else if (required) within(name, () => report(context, 'is required'), context)
    }
  })
}

/** An object whose keys the caller chooses. */
export function record(member: Check, bounds: { pairsMax?: number; keyMax?: number } = {}): Check {
  const { pairsMax = Number.POSITIVE_INFINITY, keyMax = Number.POSITIVE_INFINITY } = bounds
  const schema = () => recordSchema(member, bounds)
  return createCheck(schema, (value, context) => {
    if (!isObject(value)) return report(context, 'must be an object')
    const values = Object.values(value)
    if (values.length > pairsMax) return report(context, `must have at most ${pairsMax} pairs`)
    // Writing out tens of thousands of numeric keys takes longer than all other checks together.
    if (keyMax === Number.POSITIVE_INFINITY && values.every((item) => isValid(item, member))) return
    for (const [index, key] of Object.keys(value).entries()) {
      if (isFull(context)) return
      const item = values[index]
      if (isLonger(key, keyMax))
        within(key, () => report(context, `must have a key of at most ${keyMax} characters`), context)
      else if (!isValid(item, member)) within(key, () => member(item, context), context)
    }
  })
}

/** `otherwise`: the shape of variants that are not listed. `absent`: the variant that is meant where the member is absent. */
export type OtherFields = { otherwise?: Shape; absent?: string }

/** Objects distinguished by one member, as plugins by `id` and tools by `type`. */
export function variants(by: string, shapes: Record<string, Shape>, unnamed: OtherFields = {}): Check {
  const checks = new Map(Object.entries(shapes).map(([name, shape]) => [name, object(shape)]))
  const known = oneOf(...checks.keys())
  const other = unnamed.otherwise === undefined ? undefined : object(unnamed.otherwise)
  const schema = () => variantsSchema(by, shapes, unnamed)
  return createCheck(schema, (value, context) => {
    if (!isObject(value)) return report(context, 'must be an object')
    const name = memberOf(value, by) ?? unnamed.absent
    const validate = checks.get(name as string) ?? other
    if (validate !== undefined) validate(value, context)
    else if (name === undefined) within(by, () => report(context, 'is required'), context)
    else within(by, () => known(name, context), context)
  })
}

/** Text as a shorthand, or the long form, which is a list or an object. */
export function textOr(other: Check, what: string): Check {
  const schema = () => ({ anyOf: [{ type: 'string' }, other.schema] })
  return createCheck(schema, (value, context) => {
    if (typeof value === 'object' && value !== null) other(value, context)
    else if (typeof value !== 'string') report(context, `must be text or ${what}`)
  })
}

/** A shorthand that is a scalar, or the long form, which is a list or an object. */
export function shortOr(short: Check, long: Check): Check {
  const schema = () => ({ anyOf: [short.schema, long.schema] })
  return createCheck(schema, (value, context) =>
    typeof value === 'object' ? long(value, context) : short(value, context),
  )
}

/** Runs checks in order, up to the first that reports a problem. */
export function sequence(...checks: readonly Check[]): Check {
  const schema = () => mergedSchema(checks)
  return createCheck(schema, (value, context) => {
    const before = context.problems.length
    for (const validate of checks) if (context.problems.length === before) validate(value, context)
  })
}

/** Runs all checks and reports the problems of each. */
export function allOf(...checks: readonly Check[]): Check {
  const schema = () => mergedSchema(checks)
  return createCheck(schema, (value, context) => {
    for (const validate of checks) validate(value, context)
  })
}

/** A rule across several fields of one object, reported at the field `name`. */
export function crossField(name: string, holds: (fields: Fields) => boolean, rule: string): Check {
  return createCheck({ description: `${name} ${rule}.` }, (value, context) => {
    if (!isObject(value) || holds(value)) return
    within(name, () => report(context, rule), context)
  })
}

/** A check by a predicate; `rule` is reported where it does not hold. */
export function refine(holds: (value: unknown) => boolean, rule: string, schema: JsonSchema): Check {
  return createCheck(schema, (value, context) => {
    if (!holds(value)) report(context, rule)
  })
}

function isWithin(value: number, { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY }: Bounds): boolean {
  return value >= min && value <= max
}

function range({ min, max }: Bounds): string {
  if (min === undefined) return max === undefined ? '' : ` of at most ${max}`
  return max === undefined ? ` of at least ${min}` : ` from ${min} to ${max}`
}
