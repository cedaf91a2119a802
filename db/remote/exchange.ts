// One HTTP exchange with a database server: a response counts only when it has arrived completely, and within bounds.
import { readBounded } from './bounded-response.ts'
import type { SendRequest } from './server-client.ts'
import { asNotReached, asUnreachable, isTooLarge } from './server-errors.ts'
import { cleanSaid } from './server-failure.ts'

export type ServerResponse = { status: number; headers: Headers; body: Uint8Array<ArrayBuffer> }

/** @throws LibsqlError that is `isUnreachable`, or `isTooLarge` */
export async function exchange(send: SendRequest, request: Request, milliseconds: number): Promise<ServerResponse> {
  try {
    const response = await send(request, AbortSignal.timeout(milliseconds))
    return { status: response.status, headers: response.headers, body: await readBounded(response) }
  } catch (error) {
    throw isTooLarge(error) ? error : asUnreachable(error)
  }
}

/** The error for a response that is no success. */
export function statusError({ status, body }: Pick<ServerResponse, 'status' | 'body'>, token: string | undefined) {
  const error = new Error(`status ${status}: ${cleanSaid(Buffer.from(body).toString(), token)}`)
  // What a server refuses, it has not begun: a token, its rights, the size of the request. Who waited can have sent it on.
  return status < 500 && status !== 408 ? asNotReached(error, status) : asUnreachable(error, status)
}
