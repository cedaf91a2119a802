// The text of a JWT: three canonical base64url parts, the first two of them JSON objects. It knows no keys, times or rules.
import { LRUCache } from 'lru-cache'
import { decodeUtf8 } from '../values/bytes.ts'
import { containersIn } from '../values/json-containers.ts'

export type JsonObject = Record<string, unknown>

export type JwtText = {
  header: JsonObject
  payload: JsonObject
  /** Whether any object in header or payload names a member twice: two parsers could then read different tokens. */
  hasDuplicateMembers: boolean
}

/**
 * Reads the text of a JWT without verifying it. Undefined for other text: not three parts, a part that decoding and encoding would change
 * (padding, white space, loose trailing bits), or a header or payload that is not a JSON object in UTF-8. An empty signature passes here
 * (RFC 7519 §6 calls that a JWT) and fails verification like any wrong signature.
 */
export function parseJwtText(text: string): JwtText | undefined {
  const parts = text.split('.', 4)
  const [header, payload, signature] = parts
  if (parts.length !== 3 || header === undefined || payload === undefined || signature === undefined) return undefined
  if (signature !== '' && !isCanonicalBase64url(signature)) return undefined
  const headerPart = readHeader(header)
  const payloadPart = readJsonObject(payload)
  if (headerPart === undefined || payloadPart === undefined) return undefined
  return {
    header: headerPart.object,
    payload: payloadPart.object,
    hasDuplicateMembers: headerPart.hasDuplicateMembers || payloadPart.hasDuplicateMembers,
  }
}

/** The form of every JWT; `parseJwtText` decides which of these texts is one. */
export const jwtForm = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Whether decoding and encoding a text gives the same text: RFC 7515 §2, without padding, white space or loose bits. */
export function isCanonicalBase64url(text: string): boolean {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return false
  const lastValue = alphabet.indexOf(text.charAt(text.length - 1))
  if (text.length % 4 === 2) return (lastValue & 0b1111) === 0
  if (text.length % 4 === 3) return (lastValue & 0b11) === 0
  return text.length % 4 === 0
}

type JwtPart = Readonly<{ object: JsonObject; hasDuplicateMembers: boolean }>

/** The tokens that one key has signed have the same header, so it is read once. One that carries a key or a certificate is longer. */
const knownHeaders = new LRUCache<string, JwtPart>({ max: 256 })
const knownHeaderCharactersMax = 512

function readHeader(part: string): JwtPart | undefined {
  const known = knownHeaders.get(part)
  if (known !== undefined) return known
  const read = readJsonObject(part)
  if (read === undefined || part.length > knownHeaderCharactersMax) return read
  Object.freeze(read.object)
  // As a copy: a piece of the token would keep the whole token in memory.
  knownHeaders.set(Buffer.from(part).toString(), read)
  return read
}

function readJsonObject(part: string): JwtPart | undefined {
  if (!isCanonicalBase64url(part)) return undefined
  const text = decodeUtf8(Buffer.from(part, 'base64url'))
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? { object: value as JsonObject, hasDuplicateMembers: hasDuplicateMembers(value, text) }
      : undefined
  } catch {
    return undefined
  }
}

/** The text that parsing and writing leave unchanged names no member twice, since parsing keeps the last one. Other text is examined. */
function hasDuplicateMembers(value: object, text: string): boolean {
  return JSON.stringify(value) !== text && namesMemberTwice(text, value)
}

/** A string in JSON, with the colon after it where it is the name of a member. */
const stringInJson = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g

/** Whether an object anywhere in a JSON text names a member twice: the text has more names than the value parsed from it has members. */
export function namesMemberTwice(text: string, value: object): boolean {
  let names = 0
  for (const [, colon] of text.matchAll(stringInJson)) if (colon !== undefined) names += 1
  let members = 0
  for (const { isObject, values } of containersIn(value)) if (isObject) members += values.length
  return names > members
}
