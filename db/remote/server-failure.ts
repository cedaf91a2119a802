// What is wrong with a database server and what to do about it, in sentences for who runs this program. They contain
// nothing that the server has sent.
import { LibsqlError } from '@libsql/core/api'

const token = 'LATCHKEY_DATABASE_TOKEN or LATCHKEY_DATABASE_TOKEN_FILE'
const checkUrl = 'check LATCHKEY_DATABASE_URL'
const checkServer = 'check that it runs, and the network'
const untrusted =
  'The certificate of the database server is not trusted: set LATCHKEY_DATABASE_CA_FILE to the certificate of the authority that issued it'
const invalid = 'The certificate of the database server is not valid now: renew it, or set the clock of this machine'

export const notConfirmed =
  'The database server responds but does not confirm commits: see its log, and restart it if that continues'
const failing = 'The database server responds with an error: see its log, and whether its database was replaced'
/** Fewer than half of the servers, or a moment between two leaders. */
export const noLeader = 'The database servers have no leader: more than half of them must run and reach each other'
const notUnderstood = `The response is not one of a database server: ${checkUrl}, and any proxy in front of the server`
export const compressed =
  'The response of the database server is compressed although it must not be: turn compression off in the proxy in front of it'
export const tooSlow = 'The database server does not respond in time: check its load, and the network'
export const refusedResponse =
  'The response of the database server is larger than a node reads (4 MB), or not one of a database server: check LATCHKEY_DATABASE_URL'

const byCode: Readonly<Record<string, string>> = {
  ECONNREFUSED: `The database server refuses connections: start it, or ${checkUrl}`,
  ConnectionRefused: `The database server refuses connections: start it, or ${checkUrl}`,
  ENOTFOUND: `The host name of the database server has no address: ${checkUrl} and the name server`,
  EAI_AGAIN: 'The name server does not respond: check it, and the network',
  DNS_ENOTFOUND: `The host name of the database server has no address: ${checkUrl} and the name server`,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  CERT_HAS_EXPIRED: invalid,
  CERT_NOT_YET_VALID: invalid,
  ERR_TLS_CERT_ALTNAME_INVALID: `The certificate of the database server is for another host name: ${checkUrl}`,
  EPROTO: `The TLS handshake with the database server fails: ${checkUrl}, and whether it wants a certificate of its clients (LATCHKEY_DATABASE_CERT_FILE)`,
  SQLITE_BUSY: notConfirmed,
  SQLITE_LOCKED: notConfirmed,
}

/** Describes an error of a connection, or the status with which the server or a proxy responded. */
export function describeServerFailure(error: unknown, status?: number): string {
  if (status !== undefined) return describeStatus(status)
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause.name === 'TimeoutError') return tooSlow
    const { syscall } = cause as NodeJS.ErrnoException
    // Errors of the web platform have numbers.
    const code = String((cause as NodeJS.ErrnoException).code ?? '')
    const known = Object.hasOwn(byCode, code) ? byCode[code] : undefined
    if (known !== undefined) return known
    if (syscall === 'getaddrinfo') return String(byCode.ENOTFOUND)
    if (code === 'HRANA_COMPRESSED') return compressed
    if (code.startsWith('RESPONSE_TOO_LARGE')) return refusedResponse
    if (cause instanceof SyntaxError || code.startsWith('HRANA_')) return notUnderstood
    if (cause instanceof LibsqlError) return failing
  }
  return `The connection to the database server fails: ${checkServer}`
}

function describeStatus(status: number): string {
  const said = `(status ${status})`
  if (status === 401) return `The database server rejects the token ${said}: set ${token} to a valid one`
  if (status === 403) return `The token may not read and write the database ${said}: set ${token} to one that may`
  if (status === 404) return `There is no database server at this URL ${said}: ${checkUrl}`
  if (status === 413)
    return `A proxy in front of the database server refuses a large commit ${said}: allow bodies of 64 MB`
  if (status < 400)
    return `The database server responds with a redirect ${said}: set LATCHKEY_DATABASE_URL to its target`
  if (status < 500) return `The database server refuses requests ${said}: ${checkUrl} and any proxy in front of it`
  return `The database server, or a proxy in front of it, fails ${said}: see its log`
}

/** An error whose message is shown as it is: the client's errors begin with their code. */
export function serverError(
  message: string,
  code: string,
  more: { status?: number | undefined; cause?: unknown } = {},
) {
  const cause = more.cause instanceof Error ? more.cause : undefined
  return Object.assign(new LibsqlError(message, code, undefined, more.status, cause), { message })
}

const saidLengthMax = 200

/** What a server has said, fit for a log and a terminal: short, on one line, and without the token. */
export function cleanSaid(text: string, token: string | undefined): string {
  const said = token === undefined ? text : text.replaceAll(token, '…')
  return said.slice(0, saidLengthMax).replace(/\p{Cc}/gu, ' ')
}

/** The same error, with what the server has said in it as `cleanSaid` leaves it. */
export function cleanError(error: unknown, token: string | undefined): unknown {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    Object.defineProperty(cause, 'message', { value: cleanSaid(cause.message, token) })
  return error
}
