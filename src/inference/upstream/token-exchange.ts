// One token exchange for the credential of an upstream: the server's own token from a file for an access token.
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { CredentialExchange } from '../../../db/schema/credential-exchange.ts'
import { requestToken } from '../../agent/token-request.ts'
import { describeError, Fault } from '../../fault.ts'
import type { Fetch, FetchInit } from '../../runtime/outbound.ts'
import { jwtForm } from '../../tokens/jwt-text.ts'
import type { Upstream } from './targets.ts'

export type ExchangedToken = { text: string; lifetimeSeconds: number }

const millisecondsMax = 10_000
const tokenBytesMax = 16 * 1024

/** Where the token of an upstream is exchanged: at its own base URL unless another URL is set. */
export function exchangeUrlOf({ baseUrl }: Pick<Upstream, 'baseUrl'>, { url }: CredentialExchange): string {
  return url ?? `${baseUrl}/oauth/token`
}

/**
 * Reads the file and exchanges its token.
 * @throws Fault `bad_gateway` with a message for callers; the log says what failed
 */
export async function exchangeToken(
  upstream: Pick<Upstream, 'baseUrl' | 'caPem'>,
  exchange: CredentialExchange,
  fetch: Fetch,
): Promise<ExchangedToken> {
  const url = exchangeUrlOf(upstream, exchange)
  const subjectToken = await readToken(exchange.tokenFile)
  const init: FetchInit = {
    headers: { accept: 'application/json', 'accept-encoding': 'identity' },
    decompress: false,
    ...(upstream.caPem === null ? {} : { ca: upstream.caPem }),
  }
  const options = { fetch, name: url, init, milliseconds: millisecondsMax }
  const response = await requestToken(url, { ...exchange, subjectToken }, options).catch((error: unknown) => {
    throw failed(describeError(error))
  })
  const { token: text } = response
  if (text !== undefined) return { text, lifetimeSeconds: response.lifetimeSeconds }
  if (response.status === 200) throw failed(`${url} did not respond with a Bearer token`)
  throw failed(`${url} responded with ${response.status}${describeRefusal(response)}`)
}

function failed(what: string): Fault {
  const message = 'The inference server cannot be reached: try again later'
  return new Fault('bad_gateway', message, { reason: 'upstream_exchange_failed', detail: what })
}

/** A platform replaces the file before its token expires, so it is read for each exchange. */
async function readToken(path: string): Promise<string> {
  let file: FileHandle | undefined
  try {
    // A pipe without a writer would hold up the exchange.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    if (!(await file.stat()).isFile()) throw failed(`${path} is not a file`)
    const { bytesRead, buffer } = await file.read(Buffer.alloc(tokenBytesMax + 1), 0, tokenBytesMax + 1, 0)
    const text = buffer.toString('utf8', 0, bytesRead).trim()
    // Any other text stays on this machine.
    if (bytesRead > tokenBytesMax || !jwtForm.test(text)) throw failed(`${path} has no JWT`)
    return text
  } catch (error) {
    if (error instanceof Fault) throw error
    throw failed(`${path} cannot be read: ${describeError(error)}`)
  } finally {
    await file?.close()
  }
}

/** The OAuth error and the request id, with which the other side finds the reason in its audit log. */
function describeRefusal({ error = '', requestId }: { error?: string; requestId?: string }): string {
  const named = /^[\w.-]{1,64}$/.test(error) ? `, ${error}` : ''
  return named + (requestId === undefined ? '' : `, request id ${requestId}`)
}
