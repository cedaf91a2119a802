// Who may use the agent: programs on this machine, and never a page in a browser. Rules only.
import { createHash, timingSafeEqual } from 'node:crypto'
import { Fault } from '../fault.ts'
import { isLoopback } from './identity-token.ts'

/** Header names in lower case, as `node:http` has them. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>
/** `port` is that of the listener, undefined for a Unix socket. Without a secret, every local program may call. */
export type CallerRules = { port: number | undefined; secret: string | undefined }

/** Throws a fault for a request that came by way of a browser: a foreign page, or a name that was pointed at this machine. */
export function checkOrigin(headers: Headers, { port }: CallerRules): void {
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined)
    throw new Fault(
      'forbidden',
      'The agent does not serve pages in browsers: the request has an Origin or Sec-Fetch-Site',
    )
  // A browser cannot reach a Unix socket, and its clients send any host.
  if (port === undefined) return
  const host = String(headers.host ?? '')
  const url = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : undefined
  const isOwn = url !== undefined && url.username === '' && url.pathname === '/' && isLoopback(url.hostname)
  if (!isOwn || Number(url.port === '' ? 80 : url.port) !== port)
    throw new Fault('forbidden', 'The agent serves this machine alone: use its address, such as 127.0.0.1, as the host')
}

/** Throws a fault unless the request carries the secret, as a bearer token or in X-Api-Key. */
export function checkSecret(headers: Headers, { secret }: CallerRules): void {
  if (secret === undefined) return
  const bearer = /^bearer +(.+)$/i.exec(String(headers.authorization ?? ''))?.[1]
  const given = [bearer, headers['x-api-key']].filter((value) => typeof value === 'string')
  if (!given.some((value) => isEqual(value, secret)))
    throw new Fault('unauthorized', 'The request does not have the secret of the agent as its API key')
}

/** Compares in a time that does not depend on the texts. */
function isEqual(one: string, other: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(one), hash(other))
}
