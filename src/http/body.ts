// Reads request bodies, bounded in bytes and time and not compressed, and the JSON object in them.

import { Fault } from '../fault.ts'
import { requestBodyMillisecondsMax } from '../limits.ts'
import { readBounded } from '../runtime/bounded-stream.ts'
import { clearDeadline, setDeadline } from '../scheduling/deadlines.ts'
import { createPause, giveWay } from '../scheduling/give-way.ts'
import { decodeUtf8 } from '../values/bytes.ts'
import { containersIn } from '../values/json-containers.ts'
import { findJsonProblem, findRepeatedMember } from './json-problem.ts'
import { type JsonOutline, outlineJson } from './json-text.ts'

/** Enough of a media type to recognize it. */
const contentTypeCharactersShown = 128

/**
 * The whole body as bytes. `bytesLimit` is the first length that is too large; reading stops there, regardless of Content-Length.
 * @throws Fault `too_large`, `timeout` (the body did not arrive in time), `invalid` (compressed, or the client disconnected)
 */
export function readBody(request: Request, bytesLimit: number): Promise<Uint8Array<ArrayBuffer>> {
  const encoding = request.headers.get('content-encoding')
  if (encoding !== null && encoding.toLowerCase() !== 'identity')
    return Promise.reject(
      new Fault('invalid', 'The body has a Content-Encoding: send it uncompressed, without this header', {
        reason: 'content_encoding',
      }),
    )
  const announced = request.headers.get('content-length')
  if (Number(announced ?? 0) >= bytesLimit) return Promise.reject(tooLarge(bytesLimit))
  // With Content-Length the runtime reads exactly that many bytes, and one promise suffices for all of them. `request.body` would create
  // the stream, even if only compared with null.
  return announced === null ? readChunked(request, bytesLimit) : readWhole(request, bytesLimit)
}

async function readChunked({ body }: Request, bytesLimit: number): Promise<Uint8Array<ArrayBuffer>> {
  const late = new AbortController()
  const deadline = setDeadline(requestBodyMillisecondsMax, () => late.abort(tooLate()))
  try {
    const bound = { bytesMax: bytesLimit - 1, tooLarge: () => tooLarge(bytesLimit), signal: late.signal }
    return await readBounded(body, bound)
  } catch (error) {
    throw error instanceof Fault ? error : broken(error)
  } finally {
    clearDeadline(deadline)
  }
}

/** `Promise.race` would do the same at three times the cost, on every request. */
function readWhole(request: Request, bytesLimit: number): Promise<Uint8Array<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    const deadline = setDeadline(requestBodyMillisecondsMax, () => reject(tooLate()))
    request.bytes().then(
      (body) => {
        clearDeadline(deadline)
        if (body.byteLength < bytesLimit) resolve(body)
        else reject(tooLarge(bytesLimit))
      },
      (error) => {
        clearDeadline(deadline)
        reject(broken(error))
      },
    )
  })
}

function tooLarge(bytesLimit: number): Fault {
  return new Fault('too_large', `The body must be smaller than ${bytesLimit} bytes: shorten it`, {
    reason: 'body_too_large',
  })
}

function broken(cause: unknown): Fault {
  return new Fault('invalid', 'The body ended early: send it again', { reason: 'body_broken', cause })
}

function tooLate(): Fault {
  return new Fault('timeout', 'The body did not arrive in time: send it again', { reason: 'body_late' })
}

/**
 * The JSON object in a body; an empty body counts as an empty object.
 * @throws Fault as `readBody`, and `invalid` for another media type or any other JSON value
 */
export async function readJson(request: Request, bytesLimit: number): Promise<Record<string, unknown>> {
  const body = await readBody(request, bytesLimit)
  if (body.byteLength === 0) return {}
  if (!hasMediaType(request, 'application/json'))
    throw new Fault('invalid', 'The body is not JSON: send it as application/json', { reason: 'content_type' })
  const { fields } = await parseJsonObject(body)
  return fields
}

/** A JSON object as it was sent and as it was parsed. */
export type JsonObject = { bytes: Uint8Array<ArrayBuffer>; outline: JsonOutline; fields: Record<string, unknown> }

/** One pass over this many bytes takes about a millisecond. */
const bytesAtOnceMax = 128 * 1024

/** Call it between two passes over a body: it gives way to other requests when the body is large. */
export function giveWayAfter(bytes: Uint8Array): Promise<void> | undefined {
  return bytes.byteLength > bytesAtOnceMax ? giveWay() : undefined
}

/**
 * With `membersOnce`, a body whose outermost object names a member twice is refused, since another reader could use the other one. Objects
 * inside the members are not checked. A large body is parsed in a promise, which gives way between the passes and after the last one.
 * @throws Fault `invalid` when the bytes are not a JSON object in UTF-8, or one that would take long to parse
 */
export function parseJsonObject(
  bytes: Uint8Array<ArrayBuffer>,
  { membersOnce = false } = {},
): JsonObject | Promise<JsonObject> {
  if (bytes.byteLength > bytesAtOnceMax) return parseLargeObject(bytes, membersOnce)
  const outline = outlineJson(bytes)
  // The slices of an outline are longer than a small body.
  if (outline instanceof Promise) return parseLargeObject(bytes, membersOnce)
  const text = decodeUtf8(bytes)
  return jsonObjectOf(bytes, outline, text, membersOnce)
}

async function parseLargeObject(bytes: Uint8Array<ArrayBuffer>, membersOnce: boolean): Promise<JsonObject> {
  const outline = await outlineJson(bytes)
  await giveWay()
  const text = decodeUtf8(bytes)
  await giveWay()
  const json = await jsonObjectOf(bytes, outline, text, membersOnce)
  await giveWay()
  return json
}

function jsonObjectOf(
  bytes: Uint8Array<ArrayBuffer>,
  outline: JsonOutline,
  text: string | undefined,
  membersOnce: boolean,
): JsonObject | Promise<never> {
  const value = text === undefined ? undefined : parseJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return rejectWith(notAnObject(text, value))
  if (membersOnce && Object.keys(value).length !== outline.members.length)
    return rejectWith(memberTwice(bytes, 'outermost'))
  return { bytes, outline, fields: value as Record<string, unknown> }
}

/** What is wrong with a body can take long to find. */
async function rejectWith(fault: Promise<Fault>): Promise<never> {
  throw await fault
}

/** Whether any object in it names a member twice; parsing keeps the last one. Gives way within a large body. */
export async function hasMemberTwice({ outline, fields }: JsonObject): Promise<boolean> {
  const pause = createPause()
  let kept = 0
  for (const { isObject, values } of containersIn(fields)) {
    if (isObject) kept += values.length
    if (pause.isDueAfter(values.length + 1)) await giveWay()
  }
  return kept !== outline.membersInAll
}

/** The refusal of a body that has a member twice, in its outermost object or in any. */
export async function memberTwice(bytes: Uint8Array, where: 'outermost' | 'anywhere'): Promise<Fault> {
  const repeated = await findRepeatedMember(decodeUtf8(bytes) ?? '', where)
  const name = repeated?.name === undefined ? 'a member' : `the member ${JSON.stringify(repeated.name)}`
  const place = repeated === undefined ? '' : ` (${placeText(repeated)})`
  const message = `The body names ${name} twice in one object${place}: send each member once`
  return new Fault('invalid', message, { reason: 'body_member_twice' })
}

async function notAnObject(text: string | undefined, value: unknown): Promise<Fault> {
  const rule = 'The body must be a JSON object'
  if (text === undefined)
    return new Fault('invalid', `${rule} in UTF-8`, { reason: 'body_not_json', detail: 'not UTF-8' })
  if (value !== undefined)
    return new Fault('invalid', `${rule}, not ${kindOf(value)}`, { reason: 'body_not_json', detail: kindOf(value) })
  const problem = await findJsonProblem(text)
  const message = problem === undefined ? rule : `${rule}: ${placeText(problem)}: ${problem.rule}`
  return new Fault('invalid', message, { reason: 'body_not_json', detail: message })
}

function kindOf(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value)
  return Array.isArray(value) ? 'a list' : typeof value === 'string' ? 'a text' : 'a number'
}

function placeText({ line, column }: { line: number; column: number }): string {
  return `line ${line}, column ${column}`
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * For bodies that are JSON with or without a Content-Type: the next reader could read a body of another media type differently.
 * @throws Fault `unsupported_media_type`
 */
export function rejectOtherThanJson(request: Request): void {
  const sent = request.headers.get('content-type')
  if (sent === null || hasMediaType(request, 'application/json')) return
  const named = JSON.stringify(sent.slice(0, contentTypeCharactersShown))
  const rule = 'is not a supported Content-Type: the body must be JSON; send Content-Type: application/json'
  throw new Fault('unsupported_media_type', `${named} ${rule}`, { reason: 'content_type' })
}

/** Whether Content-Type is this media type, without parameters or with a UTF-8 charset. */
export function hasMediaType(request: Request, mediaType: string): boolean {
  const sent = request.headers.get('content-type')
  if (sent === mediaType) return true
  const [type, ...parameters] = (sent ?? '').split(';').map((part) => part.trim().toLowerCase())
  return type === mediaType && parameters.every((parameter) => /^charset="?utf-8"?$/.test(parameter))
}
