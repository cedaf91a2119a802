// Loaded before every test: each answer of a Latchkey that a test fetches is held against the OpenAPI document, whatever the test is about.
// Answers to raw sockets and to node:http are not seen here.
import { createApp } from '../../src/app.ts'
import type { Context } from '../../src/context.ts'
import { createAnswerCheck, type OpenApiDocument } from './openapi.ts'

const fetchAnswer = globalThis.fetch
const baseUrl = 'http://127.0.0.1/v1'
const known = { baseUrl, now: Date.now, config: { trustedProxies: { has: () => false } } } as unknown as Context
const app = createApp(known, async () => undefined)
const peer = { address: null, liftIdleLimit: () => () => {}, isCut: () => false }
const document = (await (await app(new Request(`${baseUrl}/openapi.json`), peer)).json()) as OpenApiDocument
const check = createAnswerCheck(document)

async function fetchAndCheck(...call: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetchAnswer(...call)
  const request = call[0] instanceof Request ? call[0] : undefined
  const method = call[1]?.method ?? request?.method ?? 'GET'
  if (response.headers.has('x-request-id')) await checkAnswer(method, response)
  return response
}

/** What is no path of the service, or no method of the path, is a 404 or a 405, and in no document. A stream is left to its reader. */
async function checkAnswer(method: string, response: Response): Promise<void> {
  const path = new URL(response.url).pathname.replace(/^.*?\/v1(?=\/)/, '')
  if (!check.knows(method, path)) {
    if (response.status !== 404 && response.status !== 405)
      throw new Error(`${method} ${path} answers ${response.status} and is not in the OpenAPI document`)
    return
  }
  const isJson = method !== 'HEAD' && response.headers.get('content-type') === 'application/json'
  check(method, path, response.status, isJson ? await response.clone().json() : undefined)
}

globalThis.fetch = Object.assign(fetchAndCheck, fetchAnswer)
