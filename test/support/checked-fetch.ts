// Loaded before every test. It checks each Latchkey response that a test fetches against the OpenAPI document, and
// requires that responses with credentials or admin data forbid caching. It does not see responses to raw sockets and
// node:http.
import { createAnswerCheck, readOwnDocument } from './openapi.ts'

const fetchAnswer = globalThis.fetch
const document = await readOwnDocument()
const check = createAnswerCheck(document)

async function fetchAndCheck(...call: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetchAnswer(...call)
  const request = call[0] instanceof Request ? call[0] : undefined
  const method = call[1]?.method ?? request?.method ?? 'GET'
  if (response.headers.has('x-request-id') && !isPage(response)) await checkAnswer(method, response)
  return response
}

/** The admin page is not part of the API. */
function isPage({ url }: Response): boolean {
  return /^\/admin(\/|$)/.test(new URL(url).pathname)
}

/** The document does not cover unknown paths (404) or methods (405). A stream is left to its reader. */
async function checkAnswer(method: string, response: Response): Promise<void> {
  const path = pathIn(new URL(response.url))
  if (check.isPrivate(method, path) || !check.knows(method, path)) checkNoStore(method, path, response)
  if (!check.knows(method, path)) {
    if (response.status !== 404 && response.status !== 405)
      throw new Error(`${method} ${path} answers ${response.status} and is not in the OpenAPI document`)
    return
  }
  const isJson = method !== 'HEAD' && response.headers.get('content-type') === 'application/json'
  check(method, path, response.status, isJson ? await response.clone().json() : undefined)
}

/** Relative to the base path; `../readyz` is next to it. So are well-known paths, which end in the base path. */
function pathIn({ pathname }: URL): string {
  if (pathname.startsWith('/.well-known/')) return `..${pathname}`
  const isBelow = /\/v1(\/|$)/.test(pathname)
  return isBelow ? pathname.replace(/^.*?\/v1(?=\/)/, '') : `..${pathname.slice(pathname.lastIndexOf('/'))}`
}

/** The token endpoint also sends the header of HTTP/1.0 caches (reference: Token exchange). */
function checkNoStore(method: string, path: string, { status, headers }: Response): void {
  const isStored = headers.get('cache-control') !== 'no-store'
  const isStoredByOld = path === '/oauth/token' && status !== 404 && headers.get('pragma') !== 'no-cache'
  if (isStored || isStoredByOld) throw new Error(`${method} ${path} answers ${status}, which a cache may store`)
}

globalThis.fetch = Object.assign(fetchAndCheck, fetchAnswer)
