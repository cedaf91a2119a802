// What of a chat-completions body must be known to forward it: the model asked for, and whether and how it streams.

import { decodeUtf8 } from '../bytes.ts'
import { Fault } from '../fault.ts'

export type ChatRequest = {
  model: string | undefined
  streams: boolean
  /** The client did not ask for the usage event of a stream, so it is asked for on our own account and withheld. */
  withholdsUsage: boolean
  /** What the upstream gets: the client's own bytes, unless the usage has to be asked for. */
  body: Uint8Array<ArrayBuffer>
}

/** @throws Fault `invalid` when the body is not a JSON object */
export function readChatRequest(body: Uint8Array<ArrayBuffer>): ChatRequest {
  const fields = parseObject(body)
  const model = typeof fields.model === 'string' ? fields.model : undefined
  if (fields.stream !== true) return { model, streams: false, withholdsUsage: false, body }
  const options = typeof fields.stream_options === 'object' ? fields.stream_options : null
  if (options !== null && 'include_usage' in options && options.include_usage === true)
    return { model, streams: true, withholdsUsage: false, body }
  const asking = { ...fields, stream_options: { ...options, include_usage: true } }
  return { model, streams: true, withholdsUsage: true, body: new TextEncoder().encode(JSON.stringify(asking)) }
}

function parseObject(body: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(decodeUtf8(body) ?? '')
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Told below, as for every other value that is not an object.
  }
  throw new Fault('invalid', 'The body must be a JSON object', { reason: 'body_not_json' })
}
