// What a caller says of a request for reports: the end user, the session and metadata. It is recorded with the request,
// and nothing relies on it.
import { sessionIdCharactersMax } from '../limits.ts'
import type { Fields } from '../presets/schema/fields.ts'

export type Said = { endUser: string | undefined; sessionId: string | undefined; metadata: string | undefined }

const endUserCharactersMax = 256
const metadataBytesMax = 4_096

/** A longer user is cut, and larger metadata is left out: neither is a reason to refuse a request. */
export function saidIn(fields: Fields, headers: Headers): Said {
  const { user, session_id: session, metadata } = fields
  const sessionId = typeof session === 'string' ? session : headers.get('x-session-id')
  return {
    endUser: boundedText(typeof user === 'string' ? user : userOfMessages(metadata), endUserCharactersMax),
    sessionId: boundedText(sessionId, sessionIdCharactersMax),
    metadata: metadataText(metadata),
  }
}

/** Anthropic's clients name the user in the metadata. */
function userOfMessages(metadata: unknown): unknown {
  return typeof metadata === 'object' && metadata !== null ? (metadata as Fields).user_id : undefined
}

function boundedText(value: unknown, max: number): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  return value.length > max ? value.slice(0, max) : value
}

function metadataText(metadata: unknown): string | undefined {
  if (typeof metadata !== 'object' || metadata === null || Object.keys(metadata).length === 0) return undefined
  const text = JSON.stringify(metadata)
  return text.length <= metadataBytesMax && Buffer.byteLength(text) <= metadataBytesMax ? text : undefined
}
