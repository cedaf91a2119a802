// Calls the admin API. `await get('/workload-identity/policies', { state: 'paused' })` returns the JSON of the response
// with its `etag`; `send('PATCH', path, body, { etag })` sends If-Match and throws status 412 if another admin was first.
// Every failure is a Problem with a sentence and the request id; `problem(error)` in parts.js shows it.
/** @import { Problem } from '../types.ts' */
import { noteResponse } from './connection.js'
import { returned } from './pace.js'

const base = new URL('../v1', document.baseURI).pathname
let onSignedOut = () => {}
/** A response to a request of an earlier session says nothing about this one. */
let sessionNumber = 0

/** Requests that nobody caused lately do not keep the session alive. */
const idleMilliseconds = 60_000
let touchedAt = Date.now()
for (const name of ['pointerdown', 'keydown'])
  addEventListener(
    name,
    () => {
      const wasIdle = isIdle()
      touchedAt = Date.now()
      if (wasIdle) document.dispatchEvent(new Event(returned))
    },
    true,
  )

/** Whether nobody has used the page for a minute. */
export const isIdle = () => Date.now() - touchedAt > idleMilliseconds

/** For another person who signs in. */
export const forgetLists = () => known.clear()

/** For a session that begins. */
export function noteSession() {
  sessionNumber += 1
}

/** Names what to do when the session has ended. @param {() => void} act */
export function whenSignedOut(act) {
  onSignedOut = act
}

/**
 * @param {string} message @param {number} status @param {string | null} [requestId] @param {{ field?: string, fields?: Record<string, string> }} [metadata]
 * @returns {Problem}
 */
function createProblem(message, status, requestId = null, { field, fields } = {}) {
  const named = { field: field ?? null, fields: fields ?? (field === undefined ? {} : { [field]: message }) }
  return Object.assign(new Error(message), { status, requestId, ...named })
}

/** @param {unknown} error @returns {Problem} */
export function asProblem(error) {
  if (error instanceof Error && 'status' in error) return /** @type {Problem} */ (error)
  return createProblem(error instanceof Error ? error.message : String(error), 0)
}

const noResponse = 'The server did not respond; check that it runs and that this machine can reach it'

/** Whether the server did not respond at all. @param {unknown} error */
export const isNoResponse = (error) => error instanceof Error && error.message === noResponse

/** @param {Record<string, string | number | boolean | undefined | null>} query */
function queryText(query) {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '')
  return kept.length === 0 ? '' : `?${new URLSearchParams(kept.map(([name, value]) => [name, String(value)]))}`
}

/** Lists as they were read last, by path: a poll that finds nothing new is a 304. @type {Map<string, { etag: string, text: string }>} */
const known = new Map()
const knownMax = 30

/** @param {string} path @param {Response} response @param {string} text the body, or that of the response that is known */
function keepList(path, response, text) {
  const etag = response.headers.get('etag')
  known.delete(path)
  if (etag === null || !response.ok || !text.startsWith('{"data":[')) return
  known.set(path, { etag, text })
  const [oldest = ''] = known.keys()
  if (known.size > knownMax) known.delete(oldest)
}

/**
 * @param {string} method @param {string} path below `/v1`, each segment encoded (`segment`)
 * @param {unknown} [body]
 * @param {{ etag?: string | undefined, signal?: AbortSignal | undefined, staysSignedIn?: boolean }} [options]
 *   `staysSignedIn`: a 401 says that a credential is wrong, not that the session has ended
 * @returns {Promise<any>} the JSON of the response, with `etag`; null for an empty one
 */
export async function send(method, path, body, { etag, signal, staysSignedIn } = {}) {
  /** @type {Record<string, string>} */
  const headers = { accept: 'application/json' }
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (etag !== undefined) headers['if-match'] = etag
  const before = method === 'GET' ? known.get(path) : undefined
  if (before !== undefined) headers['if-none-match'] = before.etag
  if (isIdle()) headers['x-latchkey-background'] = '1'
  const asked = sessionNumber
  const init = { method, headers, signal: signal ?? null, body: body === undefined ? null : JSON.stringify(body) }
  const response = await fetch(base + path, init).catch((error) => {
    if (signal?.aborted) throw error
    throw createProblem(noResponse, 0)
  })
  const text = response.status === 304 ? (before?.text ?? '') : await response.text()
  if (method === 'GET' && response.status !== 304) keepList(path, response, text)
  const requestId = response.headers.get('x-request-id')
  let json = null
  try {
    json = text === '' ? null : JSON.parse(text)
  } catch {
    throw createProblem('The response is not JSON; a proxy may have changed it', response.status, requestId)
  }
  if (response.ok || response.status === 304)
    return json === null ? null : { ...json, etag: response.headers.get('etag') ?? undefined }
  if (response.status === 401 && !staysSignedIn && asked === sessionNumber) onSignedOut()
  throw createProblem(
    json?.error?.message ?? `The server responded with status ${response.status}`,
    response.status,
    requestId,
    json?.error?.metadata,
  )
}

/**
 * @param {string} path @param {Record<string, string | number | boolean | undefined | null>} [query] empty values are left out
 * @param {{ signal?: AbortSignal, staysSignedIn?: boolean }} [options]
 */
export function get(path, query = {}, options = {}) {
  return send('GET', path + queryText(query), undefined, options)
}

let revision = ''

/** A server from which nothing comes for so long is away. */
const patienceMilliseconds = 4_000

/** Whether an administrative change was made since the last call, or the server is back. @returns {Promise<boolean>} */
export async function hasChanged() {
  const asked = sessionNumber
  const headers = { 'if-none-match': revision, 'x-latchkey-background': '1' }
  const signal = AbortSignal.timeout(patienceMilliseconds)
  const response = await fetch(`${base}/admin/revision`, { headers, signal }).catch(() => undefined)
  const isBack = noteResponse(response !== undefined && ![502, 504].includes(response.status)) && response !== undefined
  if (response?.status === 401 && asked === sessionNumber) onSignedOut()
  if (!response?.ok) return isBack
  const before = revision
  revision = response.headers.get('etag') ?? ''
  return isBack || (before !== '' && before !== revision)
}

/** One segment of a path. @param {string} text */
export function segment(text) {
  return encodeURIComponent(text)
}

/** Where the manual and the API are, for links. @param {string} path */
export function apiUrl(path) {
  return new URL(base + path, location.href).href
}
