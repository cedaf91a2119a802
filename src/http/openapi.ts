// The OpenAPI 3.1 document of the service, made from the documentation of the endpoints and the shapes that check their input.
import { isDeepStrictEqual } from 'node:util'
import { createPace, nextSlice } from '../../db/read/pace.ts'
import {
  inputDepthMax,
  inputEntriesMax,
  jsonLevelsMax,
  jsonMembersMax,
  jsonOutermostMembersMax,
  jsonValuesMax,
  operationBodyBytesMax,
} from '../limits.ts'
import { loadTypes, prepareType } from '../values/deferred-type.ts'
import type { JsonSchema } from '../values/shape.ts'
import type { Endpoint } from './endpoint.ts'
import { forceHeader } from './force.ts'
import { type BodyDoc, type Content, type OperationDoc, type Shape, schemaOf } from './operation-doc.ts'

const title = 'Latchkey'
const about =
  'Workload identity federation for self-hosted inference: a workload exchanges the JWT it holds for a short-lived access token (RFC 8693), ' +
  'which acts as an API key. Every endpoint except the token endpoint returns errors as { error: { code, message } }.\n\n' +
  'A request that matches its schema can still get a 400: the descriptions have the rules that a schema cannot express. ' +
  `Every JSON body has at most ${jsonOutermostMembersMax} members at its top level, ${jsonLevelsMax} levels, and ${jsonMembersMax} members and ` +
  `${jsonValuesMax} values in total. Bodies for keys and workload identity have at most ${inputDepthMax} levels, ${inputEntriesMax} entries in ` +
  `a list or object, and fewer than ${operationBodyBytesMax} bytes. Text is well-formed Unicode.`

const header = (description: string, type = 'string') => ({ description, schema: { type } })
const headers = {
  RequestId: header('The id of the request; log and audit have the details under it'),
  RetryAfter: header('The number of seconds after which to retry, where it is known', 'integer'),
  WwwAuthenticate: header(
    'Bearer, the error of the credential that was sent, and where the metadata of the resource are (RFC 9728)',
  ),
}
const forceParameter = {
  in: 'header',
  name: forceHeader,
  required: false,
  description: 'Whether to change also what a configuration document locks',
  schema: { type: 'string', enum: ['true', 'false'] },
}
const ifMatch = {
  in: 'header',
  name: 'If-Match',
  description: 'The ETag of the version that the change is based on; the response is a 412 if there is a newer one',
  schema: { type: 'string' },
}
const refer = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` })

/** Other work comes in between: the first use of every shape takes several hundred milliseconds. */
export async function createOpenApiDocument(
  endpoints: readonly Endpoint<never>[],
  baseUrl: string,
  version: string,
): Promise<object> {
  await nextSlice()
  await loadTypes(nextSlice)
  const pace = createPace()
  const paths: Record<string, Record<string, unknown>> = {}
  const schemas: Record<string, object> = {}
  const besideUrl = baseUrl.slice(0, baseUrl.lastIndexOf('/'))
  for (const { method, path, openapi, isBesideBase, isAtRoot } of endpoints) {
    const template = path.replace('+}', '}')
    const url = isAtRoot === true ? new URL(baseUrl).origin : isBesideBase === true ? besideUrl : undefined
    const servers = url === undefined ? {} : { servers: [{ url }] }
    paths[template] ??= {}
    await prepareType(openapi, pace)
    const operation = { ...operationOf(method, template, openapi), ...servers }
    paths[template][method.toLowerCase()] = hoistSchema(operation, schemas)
    await pace()
  }
  return {
    openapi: '3.1.0',
    info: { title, version, description: about },
    servers: [{ url: baseUrl }],
    paths,
    components: {
      schemas,
      headers,
      parameters: { IfMatch: ifMatch },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An access token, or an API key' },
        management: { type: 'http', scheme: 'bearer', description: 'A management key' },
      },
    },
  }
}

function operationOf(
  method: string,
  path: string,
  { name, summary, rules, access, segments = {}, query, body, responses, isConditional }: OperationDoc,
): object {
  const role = access.startsWith('admin:')
    ? `Role of the management key: ${access.slice('admin:'.length)} or a stronger one.`
    : ''
  const description = [rules, role].filter(Boolean).join(' ')
  const security = access === 'public' ? [] : [{ [access === 'inference' ? 'bearer' : 'management']: [] }]
  const parameters = [
    ...pathParameters(path, segments),
    ...(query === undefined ? [] : queryParameters(schemaOf(query))),
    ...(['admin:operator', 'admin:admin'].includes(access) ? [forceParameter] : []),
    ...(isConditional === true ? [refer('parameters', 'IfMatch')] : []),
  ]
  return {
    operationId: name ?? nameOf(method, path),
    summary,
    ...(description === '' ? {} : { description }),
    security,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: { required: true, content: contentOf([body].flat()) } }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, content]) => [status, responseOf(status, content)]),
    ),
  }
}

function contentOf(bodies: readonly BodyDoc[]): object {
  return Object.fromEntries(
    bodies.map(({ mediaType, shape, filledIn = [] }) => [mediaType, { schema: without(schemaOf(shape), filledIn) }]),
  )
}

/** `post` and `/oauth/token` make `postOauthToken`. */
function nameOf(method: string, path: string): string {
  return `${method.toLowerCase()}${path}`.replaceAll(/[\W_]+(\w)/g, (_, letter: string) => letter.toUpperCase())
}

function responseOf(status: string, { description, shape, mediaType = 'application/json' }: Content): object {
  return {
    description,
    headers: {
      'x-request-id': refer('headers', 'RequestId'),
      ...(status === '401' ? { 'www-authenticate': refer('headers', 'WwwAuthenticate') } : {}),
      ...(status === '429' || status === '503' ? { 'retry-after': refer('headers', 'RetryAfter') } : {}),
    },
    content: { [mediaType]: shape === undefined ? {} : { schema: schemaOf(shape) } },
  }
}

function pathParameters(path: string, segments: Readonly<Record<string, Shape>>): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const shape = segments[name]
    if (shape === undefined) throw new Error(`${path} does not describe its ${name}`)
    return { in: 'path', required: true, ...parameterOf(name, schemaOf(shape)) }
  })
}

function queryParameters({ properties = {}, required = [] }: JsonSchema): object[] {
  return Object.entries(properties)
    .filter(([name]) => name !== 'organization')
    .map(([name, schema]) => ({ in: 'query', required: required.includes(name), ...parameterOf(name, schema) }))
}

function parameterOf(name: string, { description, ...schema }: JsonSchema): object {
  return { name, ...(description === undefined ? {} : { description }), schema }
}

function without(schema: JsonSchema, names: readonly string[]): JsonSchema {
  const properties = Object.fromEntries(
    Object.entries(schema.properties ?? {}).filter(([name]) => !names.includes(name)),
  )
  return { ...schema, properties, required: (schema.required ?? []).filter((name) => !names.includes(name)) }
}

/** Moves every schema with a title to `schemas` and puts a reference in its place. */
function hoistSchema(value: unknown, schemas: Record<string, object>): unknown {
  if (Array.isArray(value)) return value.map((item) => hoistSchema(item, schemas))
  if (typeof value !== 'object' || value === null) return value
  const hoisted = Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, hoistSchema(member, schemas)]),
  )
  if (typeof hoisted.title !== 'string') return hoisted
  const before = schemas[hoisted.title]
  if (before !== undefined && !isDeepStrictEqual(before, hoisted))
    throw new Error(`Two different schemas have the title ${hoisted.title}`)
  schemas[hoisted.title] = hoisted
  return refer('schemas', hoisted.title)
}
