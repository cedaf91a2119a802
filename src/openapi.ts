// The OpenAPI 3.1 document of the service, made from what the endpoints say of themselves and from the shapes that check their input.
import type { Endpoint } from './context.ts'
import type { Content, Description, Shape } from './http/description.ts'

type JsonSchema = { properties?: Record<string, object>; required?: string[]; [member: string]: unknown }

const title = 'Latchkey'
const about =
  'Workload identity federation for self-hosted inference: a workload exchanges the JWT it holds for a short-lived access token (RFC 8693), ' +
  'which acts as an API key. Everything but the token endpoint tells errors as { error: { code, message } }.'

export function createOpenApiDocument(endpoints: readonly Endpoint[], baseUrl: string, version: string): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const { method, path, describes } of endpoints) {
    const template = path.replace('+}', '}')
    paths[template] ??= {}
    paths[template][method.toLowerCase()] = operationOf(template, describes)
  }
  return {
    openapi: '3.1.0',
    info: { title, version, description: about },
    servers: [{ url: baseUrl }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An access token, or an API key' },
        management: { type: 'http', scheme: 'bearer', description: 'A management key' },
      },
    },
  }
}

function operationOf(path: string, { summary, access, query, body, responses }: Description): object {
  const security = access === 'public' ? [] : [{ [access === 'inference' ? 'bearer' : 'management']: [] }]
  const parameters = [...pathParameters(path), ...(query === undefined ? [] : queryParameters(schemaOf(query)))]
  return {
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
    responses: Object.fromEntries(Object.entries(responses).map(([status, content]) => [status, responseOf(content)])),
  }
}

function responseOf({ description, shape, mediaType = 'application/json' }: Content): object {
  return { description, content: { [mediaType]: shape === undefined ? {} : { schema: schemaOf(shape) } } }
}

function pathParameters(path: string): object[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
  return names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
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
