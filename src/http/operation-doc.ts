// The documentation of an endpoint, written next to its code and sufficient for the OpenAPI document. It knows no endpoint.
import type { Role } from '../../db/schema/value-names.ts'
import { type JsonSchema, type } from '../values/shape.ts'

/** The form of a value: a shape of arktype, or a check with its own schema. A shape with a title becomes a component of that name. */
export type Shape = { in: { toJsonSchema: (options: object) => object } } | { schema: JsonSchema }
export type Content = { description: string; mediaType?: string; shape?: Shape }
/** `filledIn`: fields that the service sets and the caller does not send. */
export type BodyDoc = { mediaType: string; shape: Shape; filledIn?: readonly string[] }
export type OperationDoc = {
  /** The operation id; by default it is made of method and path. */
  name?: string
  summary: string
  /** The rules that no schema can express: a request that matches the schema and breaks one of them gets a 400. */
  rules?: string
  /** Who may call: anyone, any valid credential, or a management key that has at least this role. */
  access: 'public' | 'inference' | `admin:${Role}`
  /** The form of each `{segment}` of the path. */
  segments?: Readonly<Record<string, Shape>>
  query?: Shape
  /** One body, or one for each media type. */
  body?: BodyDoc | readonly BodyDoc[]
  /** Whether it takes the header If-Match. */
  isConditional?: true
  /** By status; `default` is for all other statuses. */
  responses: Readonly<Record<number, Content> & { default?: Content }>
}

/** A shape as JSON Schema. A rule that only a function checks is in the shape's `Statement`, or missing. */
export function schemaOf(shape: Shape): JsonSchema {
  if ('schema' in shape) return shape.schema
  const { $schema: _dialect, ...schema } = shape.in.toJsonSchema({
    fallback: ({ base }: { base: object }) => base,
  }) as JsonSchema
  return withDescriptions(schema) as JsonSchema
}

/** `says` becomes `description`; a property of that name is an object and stays. */
function withDescriptions(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withDescriptions)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      name === 'says' && typeof member === 'string' ? ['description', member] : [name, withDescriptions(member)],
    ),
  )
}

/** Every error except those of the token endpoint (reference: Error shape). */
export const errorShape = type({
  error: { code: 'number.integer', message: 'string', metadata: { error_type: 'string' } },
}).configure({ title: 'Error' })

const errors: Record<number, string> = {
  400: 'The request is invalid; the message names the problem',
  401: 'The credential is missing, malformed, unknown, expired or disabled',
  403: 'The credential may not do this',
  404: 'It does not exist in this organization',
  405: 'The path has other methods, which Allow names',
  408: 'The body did not arrive in time',
  409: 'It conflicts with an existing resource',
  412: 'It has changed since the ETag that If-Match names; `data` is its current version',
  413: 'The body is too large',
  500: 'An unexpected error; the log has the details',
  502: 'The inference server cannot be reached',
  503: 'Not available at the moment',
  504: 'The inference server did not respond in time',
}

/** Responses in the common error shape. */
export function errorResponses(...statuses: number[]): Record<number, Content> {
  return Object.fromEntries(
    [...statuses, 500, 503].map((status) => [status, { description: errors[status] ?? 'Error', shape: errorShape }]),
  )
}
