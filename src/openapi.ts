// The OpenAPI 3.1 document of the service, made from what the endpoints say of themselves and from the shapes that check their input.
import type { Endpoint } from './context.ts'
import type { Content, Description, Shape } from './http/description.ts'

type JsonSchema = { properties?: Record<string, object>; required?: string[]; [member: string]: unknown }

const title = 'Latchkey'
const about =
  'Workload identity federation for self-hosted inference: a workload exchanges the JWT it holds for a short-lived access token (RFC 8693), ' +
  'which acts as an API key. Everything but the token endpoint tells errors as { error: { code, message } }.'

const header = (description: string, type = 'string') => ({ description, schema: { type } })
const headers = {
  RequestId: header('The id of the request, under which log and audit have the details'),
  RetryAfter: header('In how many seconds to come again, where that is known', 'integer'),
  WwwAuthenticate: header('Bearer, and what is wrong with the credential that was sent'),
}
const refer = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` })

export function createOpenApiDocument(endpoints: readonly Endpoint[], baseUrl: string, version: string): object {
  const paths: Record<string, Record<string, unknown>> = {}
  const schemas: Record<string, object> = {}
  for (const { method, path, describes } of endpoints) {
    const template = path.replace('+}', '}')
    paths[template] ??= {}
    paths[template][method.toLowerCase()] = tellOnce(operationOf(method, template, describes), schemas)
  }
  return {
    openapi: '3.1.0',
    info: { title, version, description: about },
    servers: [{ url: baseUrl }],
    paths,
    components: {
      schemas,
      headers,
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
  { name, summary, access, segments = {}, query, body, responses }: Description,
): object {
  const security = access === 'public' ? [] : [{ [access === 'inference' ? 'bearer' : 'management']: [] }]
  const parameters = [
    ...pathParameters(path, segments),
    ...(query === undefined ? [] : queryParameters(schemaOf(query))),
  ]
  return {
    operationId: name ?? nameOf(method, path),
    summary,
    security,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { [body.mediaType]: { schema: without(schemaOf(body.shape), body.filledIn ?? []) } },
          },
        }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, content]) => [status, responseOf(status, content)]),
    ),
  }
}

/** `post` and `/oauth/token` make `postOauthToken`. */
function nameOf(method: string, path: string): string {
  return `${method.toLowerCase()}${path}`.replaceAll(/\W+(\w)/g, (_, letter: string) => letter.toUpperCase())
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

function pathParameters(path: string, segments: Readonly<Record<string, string>>): object[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')
  return names.map((name) => ({
    name,
    in: 'path',
    description: segments[name],
    required: true,
    schema: { type: 'string' },
  }))
}

function queryParameters({ properties = {}, required = [] }: JsonSchema): object[] {
  return Object.entries(properties)
    .filter(([name]) => name !== 'organization')
    .map(([name, schema]) => ({ name, in: 'query', required: required.includes(name), schema }))
}

function without(schema: JsonSchema, names: readonly string[]): JsonSchema {
  const properties = Object.fromEntries(
    Object.entries(schema.properties ?? {}).filter(([name]) => !names.includes(name)),
  )
  return { ...schema, properties, required: (schema.required ?? []).filter((name) => !names.includes(name)) }
}

/** What JSON Schema cannot say (a narrowing function) stays with the program; the base of the type is told. */
function schemaOf(shape: Shape): JsonSchema {
  const { $schema: _dialect, ...schema } = shape.in.toJsonSchema({
    fallback: ({ base }: { base: object }) => base,
  }) as JsonSchema
  return schema
}

/** Every schema with a title is put among `schemas`, and a reference in its place. */
function tellOnce(value: unknown, schemas: Record<string, object>): unknown {
  if (Array.isArray(value)) return value.map((item) => tellOnce(item, schemas))
  if (typeof value !== 'object' || value === null) return value
  const told = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, tellOnce(member, schemas)]))
  if (typeof told.title !== 'string') return told
  schemas[told.title] = told
  return refer('schemas', told.title)
}
