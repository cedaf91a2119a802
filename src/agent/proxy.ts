// The local proxy: serves one request from top to bottom. It adds the access token, and streams both ways.
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import { pipeline } from 'node:stream/promises'
import { describeError, Fault, type FaultCode } from '../fault.ts'
import { type CallerRules, checkOrigin, checkSecret } from './caller-check.ts'
import { withoutProxy } from './direct-fetch.ts'
import type { AccessToken } from './exchange.ts'
import { requestHeaders, responseHeaders, targetOf } from './forwarding-rules.ts'
import type { HeldToken } from './held-token.ts'

/** `url` has passed `checkBaseUrl`. */
export type ProxyOptions = { url: string; token: HeldToken; rules: CallerRules }
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void

/** A request whose body is longer is sent as it arrives, and not repeated. */
const keptBytesMax = 1024 * 1024

/** Serves `/livez`, `/readyz` and everything under `/v1/`. */
export function createProxy({ url, token, rules }: ProxyOptions): RequestHandler {
  const { request: send, Agent } = url.startsWith('https:') ? https : http
  const agent = new Agent({ ...withoutProxy, keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    checkOrigin(request.headers, rules)
    if (request.url === '/livez') return reply(response, 200, { status: 'alive' })
    if (request.url === '/readyz') return replyReadiness(response, token)
    checkSecret(request.headers, rules)
    const target = targetOf(request.url ?? '', url)
    let isLeft = false
    response.once('close', () => {
      isLeft = true
    })
    const body = await readBody(request)
    const call = (accessToken: AccessToken) => {
      // Nobody waits for the response, and it would be paid for.
      if (isLeft) throw new Fault('timeout', 'The client closed the connection before the request was sent')
      return openCall(() => send(target, callOptions(request, body, accessToken)), body, response)
    }
    const first = await token.get()
    let sent = await call(first)
    const next = sent.answer.statusCode === 401 && body.rest === undefined ? await token.replace(first.text) : undefined
    if (next !== undefined) {
      sent.call.destroy()
      sent = await call(next)
    }
    let isWhole = false
    try {
      await passOn(sent.answer, response)
      isWhole = body.rest?.readableEnded ?? true
    } finally {
      // A server can respond before it has the whole body, of which nothing more is read from the client.
      if (!isWhole) sent.call.destroy()
    }
  }
  const callOptions = ({ method, headers }: IncomingMessage, { start, rest }: Body, { text }: AccessToken) => ({
    method,
    agent,
    headers: {
      ...requestHeaders(headers, text),
      ...(rest === undefined && start.byteLength === 0 ? {} : bodyHeaders(start, rest)),
    },
  })
  return (request, response) => void serve(request, response).catch((error) => fail(response, error))
}

async function passOn(answer: IncomingMessage, response: ServerResponse): Promise<void> {
  const status = answer.statusCode ?? 502
  if (status >= 300 && status < 400 && status !== 304)
    throw new Fault('bad_gateway', 'The server responded with a redirect, which is not followed')
  response.writeHead(status, responseHeaders(answer.headers))
  response.flushHeaders()
  await pipeline(answer, response)
}

/** `rest` is what has not been read, undefined if `start` is the whole body. */
type Body = { start: Buffer; rest: IncomingMessage | undefined }

async function readBody(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = []
  let bytes = 0
  const declared = Number(request.headers['content-length'] ?? 0)
  if (declared > keptBytesMax) return { start: Buffer.alloc(0), rest: request }
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk)
    bytes += chunk.byteLength
    if (bytes > keptBytesMax) return { start: Buffer.concat(chunks), rest: request }
  }
  return { start: Buffer.concat(chunks), rest: undefined }
}

function bodyHeaders({ byteLength }: Buffer, rest: IncomingMessage | undefined): Record<string, string> {
  const declared = rest?.headers['content-length']
  if (rest === undefined) return { 'content-length': String(byteLength) }
  return declared === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': declared }
}

/** Other failures come from a server that received the request and responded. */
const closedCodes = ['ECONNRESET', 'EPIPE']

/** Sends the request; resolves with the head of the response. Ends the call if the client goes away. */
async function openCall(
  send: () => http.ClientRequest,
  { start, rest }: Body,
  response: ServerResponse,
): Promise<{ call: http.ClientRequest; answer: IncomingMessage }> {
  const call = send()
  const abandon = () => call.destroy()
  response.once('close', abandon)
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      call.once('response', resolve)
      // Damaged responses can cause several errors, also after the head.
      call.on('error', reject)
      call.once('close', () => reject(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })))
      if (rest === undefined) call.end(start)
      else {
        if (start.byteLength > 0) call.write(start)
        pipeline(rest, call).catch(reject)
      }
    })
    return { call, answer }
  } catch (error) {
    // The server closed a kept connection while the request was on its way, and sent nothing for it.
    const isCut = closedCodes.includes(String((error as NodeJS.ErrnoException).code))
    const isRepeatable = isCut && call.reusedSocket && rest === undefined && !response.destroyed
    if (isRepeatable) return openCall(send, { start, rest }, response)
    throw new Fault('bad_gateway', 'The Latchkey server could not be reached', { detail: describeError(error) })
  } finally {
    response.off('close', abandon)
  }
}

function replyReadiness(response: ServerResponse, token: HeldToken): void {
  const held = token.current()
  if (held === undefined) reply(response, 503, { status: 'not_ready', failing: ['token'] })
  else reply(response, 200, { status: 'ready', token_expires_at: new Date(held.expiresAt).toISOString() })
}

const statuses: Partial<Record<FaultCode, number>> = {
  invalid: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  bad_gateway: 502,
  unavailable: 503,
  timeout: 504,
}

function fail(response: ServerResponse, error: unknown): void {
  // The client must see that the response is incomplete.
  if (response.headersSent) return void response.destroy()
  const fault = error instanceof Fault ? error : new Fault('bad_gateway', 'The agent could not send the request')
  const code = statuses[fault.code] ?? 502
  reply(response, code, { error: { code, message: fault.message } })
}

function reply(response: ServerResponse, status: number, value: object): void {
  const body = `${JSON.stringify(value)}\n`
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
  })
  response.end(body)
}
