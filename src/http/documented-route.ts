// The record of a route of keys, presets and administration, and the documentation that follows from it: who gets which errors is a rule
// of its method, path and access, written once.

import { type } from '../values/shape.ts'
import type { Endpoint, Handle } from './endpoint.ts'
import { errorResponses, type OperationDoc, type Shape } from './operation-doc.ts'

export type RouteDoc = Pick<OperationDoc, 'name' | 'summary' | 'rules' | 'access' | 'segments' | 'query'> & {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  /** The JSON body, and the fields of its shape that the service sets. */
  body?: Shape
  filledIn?: readonly string[]
  /** What the response has as `data`; or the whole response. */
  data?: type.Any
  answer?: Shape
  /** What the response is. */
  says?: string
  /** Default: 200. */
  status?: number
  /** What the response to a dry run has as `data`, with status 200. */
  draft?: type.Any
  /** Default: a PATCH is. */
  isConditional?: boolean
  /** Errors that the rule below does not have. */
  errors?: readonly number[]
}

/** A route with its handler. */
export function documented<Context>({ handle, ...doc }: RouteDoc & { handle: Handle<Context> }): Endpoint<Context> {
  return { method: doc.method, path: doc.path, handle, openapi: describeRoute(doc) }
}

/** Whether a request with this method has a body. */
export function takesBody(method: RouteDoc['method']): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH'
}

/** What the OpenAPI document has of a route. */
export function describeRoute(doc: RouteDoc): OperationDoc {
  const { method, path, name, summary, rules, access, segments, query, body, filledIn, draft } = doc
  const { data, answer: shape = data && type({ data }), says: description = 'Done', status = 200, errors = [] } = doc
  const isAdmin = access.startsWith('admin')
  const isNamed = path.includes('{')
  const { isConditional = method === 'PATCH' } = doc
  const none: OperationDoc['responses'] = {}
  return {
    ...(name === undefined ? {} : { name }),
    summary,
    ...(rules === undefined ? {} : { rules }),
    access,
    ...(isNamed && segments !== undefined ? { segments } : {}),
    ...(isConditional ? { isConditional } : {}),
    ...(query === undefined ? {} : { query }),
    ...(body === undefined ? {} : { body: { mediaType: 'application/json', shape: body, filledIn } }),
    responses: {
      ...(draft === undefined
        ? none
        : { 200: { description: 'The policy is valid and was not saved', shape: type({ data: draft }) } }),
      [status]: { description, shape },
      ...errorResponses(
        ...[400, 401],
        ...(isAdmin ? [403] : []),
        ...(isNamed || takesBody(method) ? [404] : []),
        ...(takesBody(method) ? [408, 413] : []),
        ...(isAdmin && method !== 'GET' ? [409] : []),
        ...(isConditional ? [412] : []),
        ...errors,
      ),
    },
  }
}
