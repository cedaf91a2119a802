// A client that takes the service's own OpenAPI document at its word: every answer is held against it.
import { expect } from 'bun:test'
import Ajv2020 from 'ajv/dist/2020.js'

type Content = { content?: Record<string, { schema?: object }>; headers?: Record<string, object> }
type Operation = {
  operationId: string
  security: object[]
  parameters?: object[]
  responses: Record<string, Content>
}
type AnswerCheck = {
  /** Expects that an answer is one that the document tells of, and has the shape that it tells. */
  (method: string, path: string, status: number, body: unknown): void
  knows: (method: string, path: string) => boolean
  /** Whether its answers carry a credential or administration, so that nobody may store them. What an upstream says is its own. */
  isPrivate: (method: string, path: string) => boolean
}
export type OpenApiDocument = {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object> }
}
export type ApiAnswer = { status: number; data: unknown; error: unknown }

/** As the service tells times (decisions §6). */
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

export async function readDocument(baseUrl: string): Promise<OpenApiDocument> {
  const response = await fetch(`${baseUrl}/openapi.json`)
  expect(response.status).toBe(200)
  return (await response.json()) as OpenApiDocument
}

export function createAnswerCheck(document: OpenApiDocument): AnswerCheck {
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { 'date-time': isoTime } })
  for (const [name, schema] of Object.entries(document.components.schemas))
    ajv.addSchema(schema, `#/components/schemas/${name}`)
  const paths = Object.entries(document.paths)
    .toSorted(([one], [other]) => Number(one.includes('{')) - Number(other.includes('{')))
    .map(([path, operations]) => ({
      is: new RegExp(`^${path.replace('{model}', '.+').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
      operations,
    }))
  const find = (method: string, path: string) =>
    paths.find(({ is }) => is.test(path))?.operations[method === 'HEAD' ? 'get' : method.toLowerCase()]
  const check = (method: string, path: string, status: number, body: unknown): void => {
    const responses = find(method, path)?.responses
    const told = responses?.[String(status)] ?? responses?.default
    expect({ method, path, status, isTold: told !== undefined }).toMatchObject({ isTold: true })
    const schema = told?.content?.['application/json']?.schema
    if (schema === undefined || method === 'HEAD') return
    const isValid = ajv.validate(schema, body)
    expect({ method, path, status, isValid, errors: ajv.errors }).toMatchObject({ isValid: true })
  }
  const isPrivate = (method: string, path: string): boolean => {
    const { security = [], responses = {} } = find(method, path) ?? {}
    const isRelayed = Object.values(responses).some(({ content }) => content?.['*/*'] !== undefined)
    return path === '/oauth/token' || (security.length > 0 && !isRelayed)
  }
  return Object.assign(check, {
    knows: (method: string, path: string) => find(method, path) !== undefined,
    isPrivate,
  })
}

export async function createApiCaller(baseUrl: string) {
  const check = createAnswerCheck(await readDocument(baseUrl))
  return async (method: string, path: string, key?: string, body?: object): Promise<ApiAnswer> => {
    const response = await fetch(baseUrl + path, {
      method,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const answer = (await response.json()) as { data?: unknown; error?: unknown }
    check(method, path.split('?')[0] ?? '', response.status, answer)
    return { status: response.status, data: answer.data, error: answer.error }
  }
}
