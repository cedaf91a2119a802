// An inference server that responds as a test specifies and records its requests.
import type { Handler } from '../../src/runtime/listener.ts'
import { listenLocally } from './latchkey.ts'

export type UpstreamRequest = { method: string; path: string; query: string; headers: Headers; body: string }
export type ScriptedUpstream = {
  url: string
  requests: UpstreamRequest[]
  /** The response to the next requests; a test replaces it. */
  answer: { current: (request: Request) => Response | Promise<Response> }
  stop: () => Promise<void>
}

export async function startScriptedUpstream(): Promise<ScriptedUpstream> {
  const requests: UpstreamRequest[] = []
  const answer: ScriptedUpstream['answer'] = { current: () => Response.json({}) }
  const handler: Handler = async (request) => {
    const { pathname, search } = new URL(request.url)
    const body = await request.text()
    requests.push({ method: request.method, path: pathname, query: search, headers: request.headers, body })
    return answer.current(request)
  }
  const { url, listener } = await listenLocally(handler)
  return { url: `${url}/v1`, requests, answer, stop: () => listener.drain() }
}

export type HeldStream = {
  response: Response
  /** Sends a text to the caller. */
  send: (text: string) => void
  end: () => void
  /** Resolves when the caller disconnects. */
  left: Promise<void>
}

/** An event stream that lasts as long as the test needs. */
export function holdStream(): HeldStream {
  const left = Promise.withResolvers<void>()
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const body = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given
    },
    cancel: () => left.resolve(),
  })
  return {
    response: new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
    send: (text) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
    left: left.promise,
  }
}
