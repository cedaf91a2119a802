// One token exchange (RFC 8693 §2.1) for the credential of an upstream: the server's own token from a file for an access token.
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { CredentialExchange } from '../../../db/schema/credential-exchange.ts'
import { describeError, Fault } from '../../fault.ts'
import { readBounded } from '../../http/bounded-stream.ts'
import type { Fetch } from '../../runtime/outbound.ts'
import { jwtForm } from '../../tokens/jwt-text.ts'
import type { Upstream } from './targets.ts'

export type ExchangedToken = { text: string; lifetimeSeconds: number }

const millisecondsMax = 10_000
const tokenBytesMax = 16 * 1024
const responseBytesMax = 64 * 1024
/** `expires_in` is only recommended (RFC 6749 §5.1). */
const lifetimeSecondsDefault = 300
const lifetimeSecondsMax = 24 * 60 * 60

/** Where the token of an upstream is exchanged: at its own base URL unless another URL is set. */
export function exchangeUrlOf({ baseUrl }: Pick<Upstream, 'baseUrl'>, { url }: CredentialExchange): string {
  return url ?? `${baseUrl}/oauth/token`
}

/**
 * Reads the file and exchanges its token. Redirects are not followed: the token reaches one host only.
 * @throws Fault `bad_gateway` with a message for callers; the log says what failed
 */
export async function exchangeToken(
  upstream: Pick<Upstream, 'baseUrl' | 'caPem'>,
  exchange: CredentialExchange,
  fetch: Fetch,
): Promise<ExchangedToken> {
  const url = exchangeUrlOf(upstream, exchange)
  const subjectToken = await readToken(exchange.tokenFile)
  const signal = AbortSignal.timeout(millisecondsMax)
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { accept: 'application/json', 'accept-encoding': 'identity' },
      body: formOf(subjectToken, exchange),
      redirect: 'manual',
      decompress: false,
      signal,
      ...(upstream.caPem === null ? {} : { ca: upstream.caPem }),
    })
    const tooLarge = () => failed(`${url} sent more than ${responseBytesMax} bytes`)
    const body = await readBounded(response.body, { bytesMax: responseBytesMax, tooLarge, signal })
    return readResponse(response.status, new TextDecoder().decode(body), url)
  } catch (error) {
    if (error instanceof Fault) throw error
    throw failed(signal.aborted ? `${url} did not respond within 10 s` : `${url}: ${describeError(error)}`)
  }
}

function failed(what: string): Fault {
  return new Fault('bad_gateway', 'The inference server cannot be reached', {
    reason: 'upstream_exchange_failed',
    detail: what,
  })
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

function formOf(subjectToken: string, { policy, audience, scope }: CredentialExchange): URLSearchParams {
  return new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token: subjectToken,
    ...(policy === null ? {} : { federation_policy_id: policy }),
    ...(audience === null ? {} : { audience }),
    ...(scope === null ? {} : { scope }),
  })
}

function readResponse(status: number, text: string, url: string): ExchangedToken {
  const members = parseObject(text)
  const { access_token: token, token_type: type, expires_in: seconds = lifetimeSecondsDefault } = members
  if (status !== 200) throw failed(`${url} responded with ${status}${describeRefusal(members)}`)
  const isToken = typeof token === 'string' && /^[\x21-\x7e]{1,16384}$/.test(token)
  const isBearer = typeof type === 'string' && type.toLowerCase() === 'bearer'
  if (!isToken || !isBearer || typeof seconds !== 'number' || !(seconds > 0))
    throw failed(`${url} did not respond with a Bearer token`)
  return { text: token, lifetimeSeconds: Math.min(seconds, lifetimeSecondsMax) }
}

/** The OAuth error and the request id, with which the other side finds the reason in its audit log. */
function describeRefusal({ error, request_id: id }: Record<string, unknown>): string {
  const named = typeof error === 'string' && /^[\w.-]{1,64}$/.test(error) ? `, ${error}` : ''
  return named + (typeof id === 'string' && /^[\w-]{1,64}$/.test(id) ? `, request id ${id}` : '')
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
