// `fetch` that asks the hosts of direct-hosts.ts without a proxy, on Node, Bun and Deno.
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { Readable } from 'node:stream'
import { isDirect } from '../runtime/direct-hosts.ts'
import type { Fetch } from './bounded-fetch.ts'

/** Options of an agent of node:http that never uses a proxy, even with NODE_USE_ENV_PROXY. */
export const withoutProxy = { proxyEnv: {} }

export const fetchFromHere: Fetch = (url, init) => (isDirect(url) ? fetchDirectly(url, init) : fetch(url, init))

/** By node:http with its own agent. Of the headers, the response has `content-type` alone, and a redirect is not followed. */
async function fetchDirectly(url: string, init: RequestInit): Promise<Response> {
  const request = new Request(url, init)
  const body = Buffer.from(await request.arrayBuffer())
  const { request: send, Agent } = url.startsWith('https:') ? https : http
  const { method, headers } = request
  const options = { method, headers: Object.fromEntries(headers), agent: new Agent(withoutProxy), ...signalOf(init) }
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    send(url, options, resolve).on('error', reject).end(body)
  })
  const { statusCode: status = 502 } = answer
  // The constructor refuses a body for these.
  const hasBody = ![204, 205, 304].includes(status)
  if (!hasBody) answer.resume()
  const mediaType = answer.headers['content-type']
  const kept = mediaType === undefined ? {} : { headers: { 'content-type': mediaType } }
  const readable = hasBody ? (Readable.toWeb(answer) as unknown as ReadableStream<Uint8Array>) : null
  return new Response(readable, { status, ...kept })
}

function signalOf({ signal }: RequestInit): { signal?: AbortSignal } {
  return signal ? { signal } : {}
}
