// The checks of request bodies as JSON Schema, so that the OpenAPI document has the rules that validate a body.
import type { JsonSchema } from '../../values/shape.ts'

/** The length of a text, the value of a number, the items of a list. */
export type Bounds = { min?: number; max?: number }
type Rule = { readonly schema: JsonSchema }
type Fields = Readonly<Record<string, Rule | { required: Rule }>>

export function textSchema({ min, max }: Bounds): JsonSchema {
  return withoutUndefined({ type: 'string', minLength: min, maxLength: max })
}

export function numberSchema(type: 'number' | 'integer', { min, max }: Bounds): JsonSchema {
  return withoutUndefined({ type, minimum: min, maximum: max })
}

export function listSchema(item: Rule, { min, max }: Bounds): JsonSchema {
  return withoutUndefined({ type: 'array', minItems: min, maxItems: max, items: item.schema })
}

/** An optional field may be absent or null. */
export function objectSchema(shape: Fields): JsonSchema {
  const properties: Record<string, JsonSchema> = {}
  const required: string[] = []
  for (const [name, field] of Object.entries(shape)) {
    properties[name] = 'required' in field ? field.required.schema : nullable(field.schema)
    if ('required' in field) required.push(name)
  }
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }) }
}

export function recordSchema(member: Rule, { pairsMax, keyMax }: { pairsMax?: number; keyMax?: number }): JsonSchema {
  return withoutUndefined({
    type: 'object',
    maxProperties: pairsMax,
    propertyNames: keyMax === undefined ? undefined : { maxLength: keyMax },
    additionalProperties: member.schema,
  })
}

/** Each variant with its name in the member that distinguishes them. */
export function variantsSchema(
  by: string,
  shapes: Record<string, Fields>,
  { otherwise, absent }: { otherwise?: Fields; absent?: string },
): JsonSchema {
  const names = Object.keys(shapes)
  const known = names.map((name) => {
    const schema = objectSchema(shapes[name] ?? {})
    return name === absent ? withMember(schema, by, { enum: [name, null] }) : withRequired(schema, by, { const: name })
  })
  if (otherwise === undefined) return { anyOf: known }
  const other = objectSchema(otherwise)
  const name = { ...schemaOfField(otherwise[by]), not: { enum: names } }
  return { anyOf: [...known, withRequired(other, by, name)] }
}

function withMember({ properties = {}, ...schema }: JsonSchema, name: string, member: JsonSchema): JsonSchema {
  return { ...schema, properties: { ...properties, [name]: member } }
}

function withRequired({ required = [], ...schema }: JsonSchema, name: string, member: JsonSchema): JsonSchema {
  return withMember({ ...schema, required: [...new Set([name, ...required])] }, name, member)
}

function schemaOfField(field: Fields[string] = { schema: {} }): JsonSchema {
  return 'required' in field ? field.required.schema : field.schema
}

/** All rules in one; descriptions are joined. */
export function mergedSchema(checks: readonly Rule[]): JsonSchema {
  const merged: JsonSchema = {}
  for (const { schema } of checks)
    for (const [keyword, value] of Object.entries(schema))
      merged[keyword] = keyword === 'description' && merged.description ? `${merged.description} ${value}` : value
  return merged
}

function nullable(schema: JsonSchema): JsonSchema {
  const { type, anyOf, enum: values } = schema
  if (Object.keys(schema).length === 0) return schema
  if (schema.title !== undefined || schema.not !== undefined) return { anyOf: [schema, { type: 'null' }] }
  if (Array.isArray(values)) return { ...schema, enum: [...values, null] }
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, { type: 'null' }] }
  return { ...schema, type: [type, 'null'].flat() }
}

function withoutUndefined(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined))
}
