// The event that ends a stream early, as clients of each endpoint expect it.
import type { Fault } from '../fault.ts'
import { errorMetadata, messagesErrorBody, statusOf } from '../http/reply.ts'
import type { InferencePath } from '../values/inference-paths.ts'

/** The client reads it in place of the rest of the response. */
export function errorEvent({ errors }: InferencePath, fault: Fault): Uint8Array {
  const head = errors === 'chat' ? '' : 'event: error\n'
  return Buffer.from(`${head}data: ${JSON.stringify(bodies[errors](fault))}\n\n`)
}

const bodies: Record<InferencePath['errors'], (fault: Fault) => object> = {
  chat: (fault) => ({
    error: { code: statusOf(fault), message: fault.message, metadata: errorMetadata(fault) },
  }),
  messages: messagesErrorBody,
  responses: (fault) => {
    // Typed clients require a sequence number; others read `error`, which OpenAI sends too.
    const fields = {
      code: String(statusOf(fault)),
      message: fault.message,
      param: null,
      metadata: errorMetadata(fault),
    }
    return { type: 'error', sequence_number: 0, ...fields, error: fields }
  },
}
