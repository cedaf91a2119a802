// Reads request bodies: bounded in bytes and time, of one media type, plain (not compressed); and the JSON object in one.

import { Fault } from '../fault.ts'
import { requestBodyMillisecondsMax } from '../limits.ts'
import { decodeUtf8, joinChunks } from '../values/bytes.ts'
import { createPause, giveWay } from '../values/mutex.ts'
import { type JsonOutline, outlineJson } from './json-text.ts'

/** Enough of a media type to recognize it. */
const contentTypeCharactersShown = 128

/**
 * The whole body as bytes. `bytesLimit` is the first length that is too large; reading stops there, whatever Content-Length told.
 * @throws Fault `too_large`, `timeout` (the body did not arrive in time), `invalid` (compressed, or the client broke off)
 */
export async function readBody(request: Request, bytesLimit: number): Promise<Uint8Array<ArrayBuffer>> {
  const encoding = request.headers.get('content-encoding')
  if (encoding !== null && encoding.toLowerCase() !== 'identity') {
    throw new Fault('invalid', 'Send the body without Content-Encoding', { reason: 'content_encoding' })
  }
  const tooLarge = () =>
    new Fault('too_large', `The body must be smaller than ${bytesLimit} bytes`, { reason: 'body_too_large' })
  const told = request.headers.get('content-length')
  if (Number(told ?? 0) >= bytesLimit) throw tooLarge()

  // A length that was told is what the runtime reads: no more, and less is an error. One promise then does for the whole body. To ask for
  // the stream, if only whether there is one, would make it.
  if (told !== null) {
    const body = await readWhole(request)
    if (body.byteLength >= bytesLimit) throw tooLarge()
    return body
  }
  if (request.body === null) return new Uint8Array(0)

  const reader = request.body.getReader()
  const deadline = setTimeout(() => reader.cancel('late').catch(() => {}), requestBodyMillisecondsMax)
  const startedAt = performance.now()
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      length += value.byteLength
      if (length >= bytesLimit) {
        reader.cancel('too large').catch(() => {})
        throw tooLarge()
      }
      chunks.push(value)
    }
  } catch (error) {
    if (error instanceof Fault) throw error
    throw broken(error)
  } finally {
    clearTimeout(deadline)
  }
  if (performance.now() - startedAt >= requestBodyMillisecondsMax) {
    throw tooLate()
  }
  return joinChunks(chunks, length)
}

/** A race of two promises would do the same for thrice the cost, on every request. */
function readWhole(request: Request): Promise<Uint8Array<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    const deadline = setTimeout(() => reject(tooLate()), requestBodyMillisecondsMax)
    request.arrayBuffer().then(
      (body) => {
        clearTimeout(deadline)
        resolve(new Uint8Array(body))
      },
      (error) => {
        clearTimeout(deadline)
        reject(broken(error))
      },
    )
  })
}

function broken(cause: unknown): Fault {
  return new Fault('invalid', 'The body could not be read', { reason: 'body_broken', cause })
}

function tooLate(): Fault {
  return new Fault('timeout', 'The body did not arrive in time', { reason: 'body_late' })
}

/**
 * The JSON object in a body; an empty body is an empty one.
 * @throws Fault as `readBody`, and `invalid` for another media type or anything but an object
 */
export async function readJson(request: Request, bytesLimit: number): Promise<Record<string, unknown>> {
  const body = await readBody(request, bytesLimit)
  if (body.byteLength === 0) return {}
  if (!hasMediaType(request, 'application/json')) throw new Fault('invalid', 'Send the body as application/json')
  const { fields } = await parseJsonObject(body)
  return fields
}

/** A JSON object as it was sent, and what it says. */
export type JsonObject = { bytes: Uint8Array<ArrayBuffer>; outline: JsonOutline; fields: Record<string, unknown> }

/** A pass over so much takes about a millisecond. */
const bytesAtOnceMax = 128 * 1024

/** To be called between two passes over a body: other requests come first when it is a large one. */
export function giveWayAfter(bytes: Uint8Array): Promise<void> | undefined {
  return bytes.byteLength > bytesAtOnceMax ? giveWay() : undefined
}

/**
 * With `membersOnce`, an object that names a member twice is refused: of the two another reader may take the other. (Within the members it
 * may.) Gives way between the passes over a large body, and at its end.
 * @throws Fault `invalid` when the bytes are not a JSON object in UTF-8, or one that would take long to parse
 */
export async function parseJsonObject(
  bytes: Uint8Array<ArrayBuffer>,
  { membersOnce = false } = {},
): Promise<JsonObject> {
  const isLarge = bytes.byteLength > bytesAtOnceMax
  const outlined = outlineJson(bytes)
  const outline = outlined instanceof Promise ? await outlined : outlined
  if (isLarge) await giveWay()
  const text = decodeUtf8(bytes) ?? ''
  if (isLarge) await giveWay()
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Fault('invalid', 'The body must be a JSON object')
  if (membersOnce && Object.keys(value).length !== outline.members.length)
    throw new Fault('invalid', 'The body names one of its members twice', { reason: 'body_member_twice' })
  if (isLarge) await giveWay()
  return { bytes, outline, fields: value as Record<string, unknown> }
}

/** Whether any object in it names a member twice, of which parsing keeps one. Gives way within a large one. */
export async function hasMemberTwice({ outline, fields }: JsonObject): Promise<boolean> {
  return (await countMembers(fields)) !== outline.membersInAll
}

async function countMembers(whole: object): Promise<number> {
  const pause = createPause()
  const waiting = [whole]
  let count = 0
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    const members: unknown[] = Array.isArray(value) ? value : Object.values(value)
    if (!Array.isArray(value)) count += members.length
    for (const member of members) if (typeof member === 'object' && member !== null) waiting.push(member)
    if (pause.isDueAfter(members.length + 1)) await giveWay()
  }
  return count
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * For bodies that are JSON whether or not a header says so: another media type would mean another body to the next reader.
 * @throws Fault `unsupported_media_type`
 */
export function rejectOtherThanJson(request: Request): void {
  const sent = request.headers.get('content-type')
  if (sent === null || hasMediaType(request, 'application/json')) return
  const named = JSON.stringify(sent.slice(0, contentTypeCharactersShown))
  const rule = 'is not a supported Content-Type: the body must be JSON; send Content-Type: application/json'
  throw new Fault('unsupported_media_type', `${named} ${rule}`, { reason: 'content_type' })
}

/** Whether Content-Type is exactly this media type; parameters other than a UTF-8 charset do not pass. */
export function hasMediaType(request: Request, mediaType: string): boolean {
  const sent = request.headers.get('content-type')
  if (sent === mediaType) return true
  const [type, ...parameters] = (sent ?? '').split(';').map((part) => part.trim().toLowerCase())
  return type === mediaType && parameters.every((parameter) => /^charset="?utf-8"?$/.test(parameter))
}
