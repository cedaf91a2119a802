// Reads a response of a database server within bounds, so that no response fills the memory or holds the event loop for
// long. A node asks for no compression, so the bytes are those that the parser reads.
import { setImmediate } from 'node:timers/promises'
import { compressed, refusedResponse, serverError } from './server-failure.ts'

/** A server sends up to 10 MB, which take up to 90 ms to parse. What is larger than this is read in parts (`fitting.ts`). */
export const responseBytesMax = 4 * 1024 * 1024
/** Whatever such a response contains, parsing it takes a few milliseconds. */
const unmeasuredBytesMax = 64 * 1024
/** What responses of database servers stay below. With more, 4 MB take up to half a second to parse. */
const [levelsMax, listsMax, namesMax, nameBytesMax] = [16, 50_000, 64, 32]

/** @throws LibsqlError that is `isTooLarge`, or `HRANA_COMPRESSED` */
export async function readBounded(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  const encoding = response.headers.get('content-encoding') ?? 'identity'
  if (encoding !== 'identity') {
    await response.body?.cancel()
    throw serverError(compressed, 'HRANA_COMPRESSED')
  }
  const bytes = await readBytes(response)
  if (bytes.length <= unmeasuredBytesMax) return bytes
  if (!isSimple(bytes)) throw tooLarge()
  await setImmediate()
  return bytes
}

/** No 64-bit integer is longer. The client makes a BigInt of it, which takes half a second and more for 4 MB of digits. */
const integerLengthMax = 20
/** SQLite accepts no larger number, and the client takes long for many. */
const columnsMax = 2_000

/**
 * Parses what was read, unless the client would take long for the values in it.
 * @throws SyntaxError, or LibsqlError `HRANA_COSTLY`
 */
export async function parseBounded(bytes: Uint8Array): Promise<unknown> {
  const json: unknown = JSON.parse(new TextDecoder().decode(bytes))
  if (bytes.length <= unmeasuredBytesMax) return json
  await setImmediate()
  if (isCostly(json)) throw serverError(refusedResponse, 'HRANA_COSTLY')
  return json
}

function isCostly(json: unknown): boolean {
  if (typeof json !== 'object' || json === null) return false
  if (Array.isArray(json)) return json.some(isCostly)
  const { type, value, cols, last_insert_rowid: rowId } = json as Record<string, unknown>
  // No table has BLOBs, and some take the client a third of a second.
  if (type === 'blob' || (Array.isArray(cols) && cols.length > columnsMax)) return true
  if (typeof rowId === 'string' && rowId.length > integerLengthMax) return true
  if (typeof type === 'string' && typeof value === 'string')
    return type === 'integer' && value.length > integerLengthMax
  return Object.values(json).some(isCostly)
}

async function readBytes({ body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    // Leaving the loop cancels the body.
    if (length > responseBytesMax) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLarge() {
  return serverError(refusedResponse, 'RESPONSE_TOO_LARGE')
}

const [quote, backslash, colon] = [0x22, 0x5c, 0x3a]
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Whether the JSON has few levels, lists and different names of members. The parser refuses what is not JSON. */
function isSimple(json: Uint8Array): boolean {
  const names = new Set<number>()
  let [levels, lists, textStart, textEnd] = [0, 0, 0, 0]
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === quote) {
      textStart = at + 1
      textEnd = endOfText(json, textStart)
      at = textEnd
    } else if (byte === colon) {
      names.add(hashOf(json, textStart, Math.min(textEnd, textStart + nameBytesMax)))
      if (names.size > namesMax) return false
    } else if (byte === openBracket || byte === openBrace) {
      levels += 1
      if (byte === openBracket) lists += 1
      if (levels > levelsMax || lists > listsMax) return false
    } else if (byte === closeBracket || byte === closeBrace) levels -= 1
  }
  return true
}

/** The position of the quote that ends the text, or the end of the bytes. */
function endOfText(json: Uint8Array, start: number): number {
  for (let at = start; at < json.length; at++) {
    const byte = json[at]
    if (byte === quote) return at
    if (byte === backslash) at += 1
  }
  return json.length
}

function hashOf(json: Uint8Array, start: number, end: number): number {
  let hash = end - start
  for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + (json[at] ?? 0)) | 0
  return hash
}
