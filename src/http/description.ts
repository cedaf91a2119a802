// What an endpoint says of itself, next to the code that does it: enough for the OpenAPI document. It knows no endpoint.
import { type } from '../shape.ts'

/** A shape of arktype, as JSON Schema. One with a title is told under that name, once, as a component. */
export type Shape = { in: { toJsonSchema: (options: object) => object } }
export type Content = { description: string; mediaType?: string; shape?: Shape }
export type Description = {
  /** What programs call it; method and path make a name where there is none. */
  name?: string
  summary: string
  /** Who may call: anybody, whoever may infer, or a management key (`admin:read` for read-only ones as well). */
  access: 'public' | 'inference' | 'admin:read' | 'admin:write'
  /** What each `{segment}` of the path may be. */
  segments?: Readonly<Record<string, string>>
  query?: Shape
  /** Fields of the body that the caller does not send, since the service fills them in. */
  body?: { mediaType: string; shape: Shape; filledIn?: readonly string[] }
  /** By status; `default` is every other one. */
  responses: Readonly<Record<number, Content> & { default?: Content }>
}

/** Every error but those of the token endpoint (decisions §6). */
export const errorShape = type({ error: { code: 'number.integer', message: 'string' } }).configure({ title: 'Error' })

const errors: Record<number, string> = {
  400: 'The request is wrong; the message says what',
  401: 'The credential is missing, malformed, unknown, expired or disabled',
  403: 'The credential may not do this',
  404: 'There is no such thing, or not in this organization',
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
