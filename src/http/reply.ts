// Responses: JSON, and the error shape of every endpoint except the token endpoint (reference: Error shape).
import { hash } from 'node:crypto'
import { createPace } from '../../db/read/pace.ts'
import type { Fault, FaultCode } from '../fault.ts'
import { isKnown } from './conditional.ts'

/** The status of every fault. */
export const statusOfCode: Readonly<Record<FaultCode, number>> = {
  invalid: 400,
  unauthorized: 401,
  payment_required: 402,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  precondition_failed: 412,
  too_large: 413,
  unsupported_media_type: 415,
  timeout: 408,
  rate_limited: 429,
  bad_gateway: 502,
  gateway_timeout: 504,
  unavailable: 503,
  usage: 400,
  configuration: 500,
  internal: 500,
}

/** As in nginx: the client left before there was a response. */
export const statusClientLeft = 499

/** The HTTP status of a fault. */
export function statusOf(fault: Fault): number {
  return statusOfCode[fault.code]
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } })
}

/** `{ "data": [ … ], … }`, the form of every list. */
export function isList(body: unknown): body is { data: unknown[] } {
  return typeof body === 'object' && body !== null && 'data' in body && Array.isArray(body.data)
}

/** Longer responses are sent in pieces of this size. */
const pieceCharacters = 64 * 1024

/**
 * The same as `json`, but long lists are sent in pieces, with other requests served in between. A short list has an ETag, and is a 304 for a
 * `request` that names it: a page that asks again and again then costs a few bytes.
 */
export function jsonInSlices(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
  request?: Request,
): Response {
  const pieces = piecesOf(body)
  const init = { status, headers: { 'content-type': 'application/json', ...headers } }
  const first = pieces.next()
  const second = pieces.next()
  if (first.done === true || second.done === true)
    return isList(body) ? listOrKnown(first.value ?? '', init, request) : new Response(first.value ?? '', init)
  const encoder = new TextEncoder()
  const pace = createPace()
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(first.value + second.value)),
    pull: async (controller) => {
      await pace()
      const { done, value } = pieces.next()
      if (done === true) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
  })
  return new Response(stream, init)
}

function listOrKnown(
  text: string,
  { status, headers }: { status: number; headers: Record<string, string> },
  request: Request | undefined,
): Response {
  if (request?.method !== 'GET') return new Response(text, { status, headers })
  const etag = `"${hash('sha1', text, 'base64url')}"`
  if (isKnown(request, etag)) return new Response(null, { status: 304, headers: { ...headers, etag } })
  return new Response(text, { status, headers: { ...headers, etag } })
}

function* piecesOf(body: unknown): Generator<string, undefined> {
  let piece = ''
  for (const text of textsOf(body, listsDepth)) {
    piece += text
    if (piece.length < pieceCharacters) continue
    yield piece
    piece = ''
  }
  if (piece !== '') yield piece
}

/** Where lists can be long: members of the body, or of its `data`. */
const listsDepth = 2

/** The text of `JSON.stringify`, with a part for each row of these lists. */
function* textsOf(value: unknown, depth: number): Generator<string> {
  if (Array.isArray(value)) {
    for (const [index, row] of value.entries()) yield `${index === 0 ? '[' : ','}${JSON.stringify(row) ?? 'null'}`
    yield value.length === 0 ? '[]' : ']'
  } else if (depth > 0 && isRecord(value)) {
    let isFirst = true
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined || typeof member === 'function') continue
      yield `${isFirst ? '{' : ','}${JSON.stringify(name)}:`
      yield* textsOf(member, depth - 1)
      isFirst = false
    }
    yield isFirst ? '{}' : '}'
  } else yield JSON.stringify(value)
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !('toJSON' in value)
}

/** Words that never change their meaning. Most are those of OpenRouter's clients. */
const errorTypes: Readonly<Record<FaultCode, string>> = {
  invalid: 'invalid_request',
  unauthorized: 'authentication',
  payment_required: 'payment_required',
  forbidden: 'permission_denied',
  not_found: 'not_found',
  method_not_allowed: 'invalid_request',
  conflict: 'conflict',
  precondition_failed: 'precondition_failed',
  too_large: 'payload_too_large',
  unsupported_media_type: 'invalid_request',
  timeout: 'timeout',
  rate_limited: 'rate_limit_exceeded',
  bad_gateway: 'provider_unavailable',
  gateway_timeout: 'timeout',
  unavailable: 'server',
  usage: 'invalid_request',
  configuration: 'server',
  internal: 'server',
}
export const errorTypeWords: ReadonlySet<string> = new Set(Object.values(errorTypes))

/** What every error says of its kind, in addition to its status. */
export function errorMetadata({ code, field, fields, metadata }: Fault): object {
  const named = { ...(field === undefined ? {} : { field }), ...(fields === undefined ? {} : { fields }) }
  return { error_type: errorTypes[code], ...named, ...metadata }
}

/** `{ "error": { "code": <status>, "message": <string>, "metadata": {…} } }`, without private details (reference: Error shape). */
export function errorReply(fault: Fault): Response {
  const status = statusOf(fault)
  const current = fault.current === undefined ? {} : { data: fault.current }
  const type = fault.metadata === undefined ? {} : { type: fault.reason }
  const error = { code: status, message: fault.message, ...type, metadata: errorMetadata(fault) }
  return refusal(fault, { error, ...current })
}

const messagesErrorTypes: Partial<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
}

/** The same, with the members that clients of the messages API expect. */
export function messagesErrorReply(fault: Fault): Response {
  return refusal(fault, messagesErrorBody(fault))
}

export function messagesErrorBody(fault: Fault): object {
  const status = statusOf(fault)
  const type = messagesErrorTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
  const metadata = errorMetadata(fault)
  return { type: 'error', error: { type, code: status, message: fault.message, metadata } }
}

function refusal(fault: Fault, body: object): Response {
  return json(statusOf(fault), body, { 'cache-control': 'no-store', ...fault.headers })
}
