// A client that checks every response against the service's own OpenAPI document.
import { expect } from 'bun:test'
import Ajv2020 from 'ajv/dist/2020.js'
import { followNobody } from '../../src/nodes/follow.ts'
import { createApp } from '../../src/server/app.ts'
import type { Context } from '../../src/server/context.ts'

type Content = { content?: Record<string, { schema?: JsonSchema }>; headers?: Record<string, object> }
export type JsonSchema = { properties?: Record<string, JsonSchema>; [keyword: string]: unknown }
export type Parameter = { name: string; in: 'path' | 'query'; required: boolean; schema: JsonSchema }
type Operation = {
  operationId: string
  security: object[]
  /** Marks an operation next to the base path. */
  servers?: { url: string }[]
  parameters?: Parameter[]
  requestBody?: Content
  responses: Record<string, Content>
}
/** A path next to the base path starts with `..`, such as `../readyz`. */
type AnswerCheck = {
  /** Checks that the document describes the response and that the response has the described shape. */
  (method: string, path: string, status: number, body: unknown): void
  knows: (method: string, path: string) => boolean
  /**
   * Whether the responses contain a credential or admin data, and so must not be cached. Upstream responses are exempt.
   */
  isPrivate: (method: string, path: string) => boolean
}
export type OpenApiDocument = {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object> }
}
export type ApiAnswer = { status: number; data: unknown; error: unknown; body: object }

/** The time format of the service (reference: Times and ids). */
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

export async function readDocument(baseUrl: string): Promise<OpenApiDocument> {
  const response = await fetch(`${baseUrl}/openapi.json`)
  expect(response.status).toBe(200)
  return (await response.json()) as OpenApiDocument
}

/** The document of an app without a server; only its address differs. */
export async function readOwnDocument(): Promise<OpenApiDocument> {
  const baseUrl = 'http://127.0.0.1/v1'
  const context = {
    baseUrl,
    now: Date.now,
    monotonic: Date.now,
    inEffect: { read: () => ({ trustedProxies: { has: () => false } }) },
    accessLog: { isOn: () => false },
    readiness: { isStopping: () => false },
    writer: { isBroken: () => false },
    callers: new WeakMap(),
    follow: followNobody(),
  } as unknown as Context
  const peer = {
    address: null,
    liftIdleLimit: () => {},
    restoreIdleLimit: () => {},
    isCut: () => false,
    outlives: () => {},
  }
  const app = createApp(context, async () => undefined)
  return (await (await app(new Request(`${baseUrl}/openapi.json`), peer)).json()) as OpenApiDocument
}

/** Returns the schema of a request body. */
export function bodySchema({ paths }: OpenApiDocument, method: string, path: string): JsonSchema {
  const [content] = Object.values(paths[path]?.[method.toLowerCase()]?.requestBody?.content ?? {})
  if (content?.schema === undefined) throw new Error(`${method} ${path} takes no body`)
  return content.schema
}

/** Reports whether a value matches a schema of the document. */
export function createSchemaCheck(document: OpenApiDocument): (schema: object, value: unknown) => boolean {
  const ajv = createAjv(document)
  return (schema, value) => ajv.validate(schema, value)
}

function createAjv(document: OpenApiDocument): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { 'date-time': isoTime } })
  for (const [name, schema] of Object.entries(document.components.schemas))
    ajv.addSchema(schema, `#/components/schemas/${name}`)
  return ajv
}

export function createAnswerCheck(document: OpenApiDocument): AnswerCheck {
  const ajv = createAjv(document)
  const paths = Object.entries(document.paths)
    .toSorted(([one], [other]) => Number(one.includes('{')) - Number(other.includes('{')))
    .map(([path, operations]) => ({
      is: new RegExp(
        `^${isBeside(operations) ? '\\.\\.' : ''}${path.replace(/\{(model|file|base)\}/, '.+').replaceAll(/\{\w+\}/g, '[^/]+')}$`,
      ),
      operations,
    }))
  const find = (method: string, path: string) =>
    paths.find(({ is }) => is.test(path))?.operations[method === 'HEAD' ? 'get' : method.toLowerCase()]
  const check = (method: string, path: string, status: number, body: unknown): void => {
    const responses = find(method, path)?.responses
    const documented = responses?.[String(status)] ?? responses?.default
    expect({ method, path, status, isDocumented: documented !== undefined }).toMatchObject({ isDocumented: true })
    const schema = documented?.content?.['application/json']?.schema
    if (schema === undefined || method === 'HEAD') return
    const isValid = ajv.validate(schema, body)
    expect({ method, path, status, isValid, errors: ajv.errors }).toMatchObject({ isValid: true })
  }
  const isPrivate = (method: string, path: string): boolean => {
    const { security = [], responses = {} } = find(method, path) ?? {}
    const isRelayed = Object.values(responses).some(({ content }) => content?.['*/*'] !== undefined)
    return path === '/oauth/token' || path === '/admin/session' || (security.length > 0 && !isRelayed)
  }
  return Object.assign(check, {
    knows: (method: string, path: string) => find(method, path) !== undefined,
    isPrivate,
  })
}

function isBeside(operations: OpenApiDocument['paths'][string]): boolean {
  return Object.values(operations).some(({ servers }) => servers !== undefined)
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
    return { status: response.status, data: answer.data, error: answer.error, body: answer }
  }
}
