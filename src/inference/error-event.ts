// The event that ends a stream early, as clients of each endpoint expect it.
import type { Fault } from '../fault.ts'
import { messagesErrorBody, statusOf } from '../http/reply.ts'

/** The client reads it in place of the rest of the response. */
export function errorEvent(endpoint: string, fault: Fault): Uint8Array {
  return Buffer.from(textOf(endpoint, fault))
}

function textOf(endpoint: string, fault: Fault): string {
  const { message } = fault
  const code = statusOf(fault)
  if (endpoint === '/messages') return `event: error\ndata: ${JSON.stringify(messagesErrorBody(fault))}\n\n`
  if (endpoint !== '/responses') return `data: ${JSON.stringify({ error: { code, message } })}\n\n`
  // Typed clients require a sequence number; others read `error`, which OpenAI sends too.
  const fields = { code: String(code), message, param: null }
  return `event: error\ndata: ${JSON.stringify({ type: 'error', sequence_number: 0, ...fields, error: fields })}\n\n`
}
