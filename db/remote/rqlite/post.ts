// Sends requests to the nodes of a cluster.
import { exchange, type ServerResponse, statusError } from '../exchange.ts'
import type { ConnectOptions } from '../server-client.ts'
import { asUnreachable, noLeaderError } from '../server-errors.ts'
import { cleanSaid } from '../server-failure.ts'
import type { Addresses } from './addresses.ts'

/** Sends a request to one address. */
export type Post = (address: string, path: string, body: unknown, milliseconds: number) => Promise<ServerResponse>

/** `token` is `user:password`. */
export function createPost({ send, token }: Pick<ConnectOptions, 'send' | 'token'>): Post {
  const headers = { 'content-type': 'application/json', ...authorizationOf(token) }
  return async (address, path, body, milliseconds) => {
    const limit = `timeout=${milliseconds}ms`
    const url = `${address}${path}${path.includes('?') ? '&' : '?'}${limit}`
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const received = await exchange(send, new Request(url, { method: 'POST', headers, body: text }), milliseconds)
    if (received.status === 200) return received
    const said = Buffer.from(received.body).toString()
    if (received.status === 503 && said.includes('leader not found'))
      throw noLeaderError(cleanSaid(said, token), { isBegun: false })
    throw statusError(received, token)
  }
}

function authorizationOf(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Basic ${Buffer.from(token).toString('base64')}` }
}

/** What a node reports. @throws as `post` */
export async function readStatus(
  { send, token }: Pick<ConnectOptions, 'send' | 'token'>,
  address: string,
  milliseconds: number,
): Promise<unknown> {
  const request = new Request(`${address}/status`, { headers: authorizationOf(token) })
  const received = await exchange(send, request, milliseconds)
  if (received.status !== 200) throw statusError(received, token)
  return JSON.parse(Buffer.from(received.body).toString())
}

/** Any node passes the copy of the leader on. It takes as long as the database is large. */
const copyPath = '/db/backup?timeout=1h'

/** Tries each address until one responds. */
export async function readCopy(
  { send, token }: Pick<ConnectOptions, 'send' | 'token'>,
  addresses: Addresses,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  for (let tries = 1; ; tries++) {
    const address = addresses.current()
    try {
      const response = await send(new Request(`${address}${copyPath}`, { headers: authorizationOf(token) }), signal)
      if (response.status === 200 && response.body !== null) return response.body
      throw statusError({ status: response.status, body: new Uint8Array(await response.arrayBuffer()) }, token)
    } catch (error) {
      if (tries >= addresses.all.length) throw asUnreachable(error)
      addresses.leave(address)
    }
  }
}
