// Holds what a caller sent, in a body or in the query, against the shape that the OpenAPI document gives for it.
import { Fault } from '../fault.ts'
import { checkShape, type JsonSchema, type } from '../values/shape.ts'
import { type Shape, schemaOf } from './operation-doc.ts'
import { queryOf } from './query.ts'

type Fields = Record<string, unknown>
/** An object shape as a function: what it accepts, or the errors. */
type Check<Input> = Shape & ((value: unknown) => Input | type.errors)

/** For endpoints that take no parameters. */
export const noQuery = type({ '+': 'reject' })

/**
 * Returns the fields as they were sent, without those that the shape knows and the service ignores.
 * @throws Fault `invalid` for a field that the shape does not know, or a value that it refuses
 */
export function checkFields<Checked extends type.Any, Ignored extends string = never>(
  fields: Fields,
  shape: Checked,
  ignored: readonly Ignored[] = [],
): Omit<Checked['inferIn'], Ignored> {
  const known = propertiesOf(shape)
  const unknown = Object.keys(fields).find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined)
    throw new Fault('invalid', `${JSON.stringify(unknown)} cannot be set: use one of ${namesIn(known, ignored)}`)
  const isIgnored = (name: string) => ignored.some((other) => other === name)
  const given = Object.fromEntries(Object.entries(fields).filter(([name]) => !isIgnored(name)))
  if (Object.keys(given).length < minPropertiesOf(shape))
    throw new Fault('invalid', `Nothing to change: send at least one of ${namesIn(known, ignored)}`)
  checkShape(shape, given)
  return given as Omit<Checked['inferIn'], Ignored>
}

/**
 * The parameters of a query as values: numbers and flags where the shape has them.
 * @throws Fault `invalid` for a parameter that is unknown or comes twice, or a value that the shape refuses
 */
export function readQuery<Input>(request: Request, shape: Check<Input>): Input {
  const known = propertiesOf(shape)
  const fields = readParameters(request, shape)
  const unknown = Object.keys(fields).find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined) {
    const names = namesIn(known)
    const rule = names === '' ? 'remove it, this path takes none' : `use ${names}`
    throw new Fault('invalid', `${JSON.stringify(unknown)} is not a query parameter of this path: ${rule}`)
  }
  return checkShape(shape, fields)
}

/** The same before the shape judges them, for whoever adds fields. */
export function readParameters(request: Request, shape: Shape): Fields {
  const known = propertiesOf(shape)
  const fields = new Map<string, unknown>()
  for (const [name, text] of queryOf(request)) {
    if (fields.has(name)) throw new Fault('invalid', `${JSON.stringify(name)} is in the query twice: send it once`)
    fields.set(name, typedValue(name, text, Object.hasOwn(known, name) ? known[name] : undefined))
  }
  return Object.fromEntries(fields)
}

function typedValue(name: string, text: string, schema: JsonSchema | undefined): unknown {
  const wrong = (rule: string) =>
    new Fault('invalid', `${JSON.stringify(text)} is not a valid value for ${name}: use ${rule}`)
  if (schema?.type === 'integer') {
    if (!/^-?[0-9]+$/.test(text)) throw wrong('a whole number')
    return Number(text)
  }
  if (schema?.type === 'boolean') {
    if (text !== 'true' && text !== 'false') throw wrong('true or false')
    return text === 'true'
  }
  return text
}

function namesIn(properties: Record<string, JsonSchema>, ignored: readonly string[] = []): string {
  return Object.keys(properties)
    .filter((name) => !ignored.includes(name))
    .join(', ')
}

const schemas = new WeakMap<Shape, JsonSchema>()

/** Made at the first request that needs it. */
function keptSchema(shape: Shape): JsonSchema {
  const schema = schemas.get(shape) ?? schemaOf(shape)
  schemas.set(shape, schema)
  return schema
}

function propertiesOf(shape: Shape): Record<string, JsonSchema> {
  return keptSchema(shape).properties ?? {}
}

function minPropertiesOf(shape: Shape): number {
  return Number(keptSchema(shape).minProperties ?? 0)
}
