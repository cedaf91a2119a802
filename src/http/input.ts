// Checks what a caller sent, in a body or in the query, with the shape that the OpenAPI document shows.
import { Fault } from '../fault.ts'
import { checkShape, type JsonSchema, type type } from '../values/shape.ts'
import { type Shape, schemaOf } from './operation-doc.ts'

type Fields = Record<string, unknown>
/** An object shape as a function that returns the input or the errors. */
type Check<Input> = Shape & ((value: unknown) => Input | type.errors)

/**
 * The fields as they were sent, without the `ignored` ones, which the shape has and the service does not use.
 * @throws Fault `invalid` for a field that is not in the shape, or a value that the shape refuses
 */
export function checkFields<Checked extends type.Any, Ignored extends string = never>(
  fields: Fields,
  shape: Checked,
  ignored: readonly Ignored[] = [],
): Omit<Checked['inferIn'], Ignored> {
  const known = propertiesOf(shape)
  const unknown = Object.keys(fields).find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined)
    throw new Fault(
      'invalid',
      `${JSON.stringify(unknown)} is not a field of this request: use ${namesIn(known, ignored)}`,
    )
  const isIgnored = (name: string) => ignored.some((other) => other === name)
  const given = Object.fromEntries(Object.entries(fields).filter(([name]) => !isIgnored(name)))
  if (Object.keys(given).length < minPropertiesOf(shape))
    throw new Fault('invalid', `Nothing to change: send at least one of ${namesIn(known, ignored)}`)
  checkShape(shape, given)
  return given as Omit<Checked['inferIn'], Ignored>
}

/**
 * The parameters of a query as values; numbers and booleans where the shape has them.
 * @throws Fault `invalid` for a parameter that is unknown or repeated, or a value that the shape refuses
 */
export function readQuery<Input>(request: Request, shape: Check<Input>): Input {
  const known = propertiesOf(shape)
  const fields = typedFields(request, known)
  rejectUnknown(fields, known)
  return checkShape(shape, fields)
}

/**
 * For paths without parameters.
 * @throws Fault `invalid` for any parameter
 */
export function rejectQuery(request: Request): void {
  rejectUnknown(typedFields(request, {}), {})
}

function rejectUnknown(fields: Fields, known: Record<string, JsonSchema>): void {
  const unknown = Object.keys(fields).find((name) => !Object.hasOwn(known, name))
  if (unknown === undefined) return
  const names = namesIn(known)
  const rule = names === '' ? 'remove it; this path has none' : `use ${names}`
  throw new Fault('invalid', `${JSON.stringify(unknown)} is not a query parameter of this path: ${rule}`)
}

/** The same before the shape is checked, for callers that add fields. */
export function readParameters(request: Request, shape: Shape): Fields {
  return typedFields(request, propertiesOf(shape))
}

function typedFields(request: Request, known: Record<string, JsonSchema>): Fields {
  const fields = new Map<string, unknown>()
  for (const [name, text] of queryOf(request)) {
    if (fields.has(name)) throw new Fault('invalid', `${JSON.stringify(name)} is repeated in the query: send it once`)
    fields.set(name, typedValue(name, text, Object.hasOwn(known, name) ? known[name] : undefined))
  }
  return Object.fromEntries(fields)
}

/** Reads only what follows the question mark: `url` begins with the Host header, which may not be a valid host. */
function queryOf({ url }: Request): URLSearchParams {
  return new URLSearchParams(url.slice(url.indexOf('?') + 1 || url.length))
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

/** Created at the first request that needs it. */
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
