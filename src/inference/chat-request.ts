// What of a chat-completions body must be known to forward it: the model asked for, and whether and how it streams.

import { decodeUtf8, joinChunks } from '../bytes.ts'
import { Fault } from '../fault.ts'

const exactNames = ['stream', 'stream_options']
const usageMember = new TextEncoder().encode(',"stream_options":{"include_usage":true}}')

export type ChatRequest = {
  model: string | undefined
  streams: boolean
  /** The client did not ask for the usage event of a stream, so it is asked for on our own account and withheld. */
  withholdsUsage: boolean
  /** What the upstream gets: the client's own bytes, unless the usage has to be asked for. */
  body: Uint8Array<ArrayBuffer>
}

/** @throws Fault `invalid` when the body is not a JSON object, or leaves open whether it asks for a stream */
export function readChatRequest(body: Uint8Array<ArrayBuffer>): ChatRequest {
  const fields = parseObject(body)
  const model = typeof fields.model === 'string' ? fields.model : undefined
  const { streams, options } = readStreaming(fields)
  if (!streams) return { model, streams, withholdsUsage: false, body }
  if (options?.include_usage === true) return { model, streams, withholdsUsage: false, body }
  const asking = options === undefined ? appendOptions(body) : replaceOptions(fields, options)
  return { model, streams, withholdsUsage: true, body: asking }
}

/**
 * Inference servers differ in what they take for `stream: true`: the number 1, the text "true", another case of the name. What we took
 * for no stream would then stream without its usage being asked for.
 */
function readStreaming(fields: Record<string, unknown>): { streams: boolean; options?: Record<string, unknown> } {
  for (const name of Object.keys(fields)) {
    if (!exactNames.includes(name) && exactNames.includes(name.toLowerCase()))
      throw invalid(`Write ${name.toLowerCase()} in lower case`)
  }
  const { stream, stream_options: options } = fields
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean')
    throw invalid('stream must be true or false')
  if (options === undefined) return { streams: stream === true }
  if (options === null) return { streams: stream === true, options: {} }
  if (typeof options !== 'object' || Array.isArray(options)) throw invalid('stream_options must be an object')
  return { streams: stream === true, options: options as Record<string, unknown> }
}

/** The client's own bytes with one member more, so that its numbers reach the upstream as they were written. */
function appendOptions(body: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const end = body.lastIndexOf('}'.charCodeAt(0))
  return joinChunks([body.subarray(0, end), usageMember], end + usageMember.byteLength)
}

function replaceOptions(fields: Record<string, unknown>, options: Record<string, unknown>): Uint8Array<ArrayBuffer> {
  try {
    return new TextEncoder().encode(JSON.stringify({ ...fields, stream_options: { ...options, include_usage: true } }))
  } catch {
    throw invalid('The body is nested too deeply')
  }
}

function parseObject(body: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(decodeUtf8(body) ?? '')
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Told below, as for every other value that is not an object.
  }
  throw invalid('The body must be a JSON object')
}

function invalid(message: string): Fault {
  return new Fault('invalid', message)
}
