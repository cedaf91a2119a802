// What an endpoint says of itself, next to the code that does it: enough for the OpenAPI document. It knows no endpoint.
import { type JsonSchema, type } from '../values/shape.ts'

/** What a value must be: a shape of arktype, or a check that brings its own schema. One with a title becomes a component of that name. */
export type Shape = { in: { toJsonSchema: (options: object) => object } } | { schema: JsonSchema }
export type Content = { description: string; mediaType?: string; shape?: Shape }
export type OperationDoc = {
  /** What programs call it; method and path make a name where there is none. */
  name?: string
  summary: string
  /** The rules that no schema can say, for whoever sends what the schema allows and gets a 400. */
  rules?: string
  /** Who may call: anybody, whoever may infer, or a management key (`admin:read` for read-only ones as well). */
  access: 'public' | 'inference' | 'admin:read' | 'admin:write'
  /** What each `{segment}` of the path may be. */
  segments?: Readonly<Record<string, Shape>>
  query?: Shape
  /** Fields of the body that the caller does not send, since the service fills them in. */
  body?: { mediaType: string; shape: Shape; filledIn?: readonly string[] }
  /** By status; `default` is every other one. */
  responses: Readonly<Record<number, Content> & { default?: Content }>
}

/** A shape as JSON Schema. A rule that only a function checks is in what the shape says of itself (`Statement`), or missing. */
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

/** Every error but those of the token endpoint (reference: Error shape). */
export const errorShape = type({ error: { code: 'number.integer', message: 'string' } }).configure({ title: 'Error' })

const errors: Record<number, string> = {
  400: 'The request is wrong; the message says what',
  401: 'The credential is missing, malformed, unknown, expired or disabled',
  403: 'The credential may not do this',
  404: 'There is no such thing, or not in this organization',
  405: 'The path is that of another request, which Allow names',
  408: 'The body came too slowly',
  409: 'It conflicts with something that exists',
  413: 'The body is too large',
  500: 'Something unforeseen; the log has the details',
  502: 'The inference server cannot be reached',
  503: 'Not available at the moment',
  504: 'The inference server did not answer in time',
}

/** Responses in the common error shape. */
export function errorResponses(...statuses: number[]): Record<number, Content> {
  return Object.fromEntries(
    [...statuses, 500, 503].map((status) => [status, { description: errors[status] ?? 'Error', shape: errorShape }]),
  )
}
