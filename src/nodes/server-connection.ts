// Sends the requests of the database client to a database server, and reports which of them were certainly not sent.

import type { SendRequest } from '../../db/remote/server-client.ts'
import { asNotReached } from '../../db/remote/server-errors.ts'
import { outboundFetch } from '../runtime/outbound.ts'
import { type DatabaseServer, readText } from '../settings/database-server.ts'

/**
 * Sends the requests of the database client.
 * @throws Fault `configuration` if the certificates cannot be read
 */
export function connectTo({
  caFile,
  client: files,
}: Pick<DatabaseServer, 'caFile'> & Partial<Pick<DatabaseServer, 'client'>>): SendRequest {
  const ca = caFile === undefined ? undefined : readText('LATCHKEY_DATABASE_CA_FILE', caFile)
  const client = files && {
    cert: readText('LATCHKEY_DATABASE_CERT_FILE', files.certFile),
    key: readText('LATCHKEY_DATABASE_KEY_FILE', files.keyFile),
  }
  const trust = { ...(ca !== undefined && { ca }), ...(client !== undefined && { client }) }
  return async (request, signal) => {
    const { url, method } = request
    const body = method === 'GET' ? undefined : await request.arrayBuffer()
    const headers = { ...Object.fromEntries(request.headers), 'accept-encoding': 'identity' }
    // After a redirect, an error could be that of the second request.
    const init = { method, headers, signal, redirect: 'manual' as const, decompress: false, ...(body && { body }) }
    try {
      return await outboundFetch(url, { ...init, ...trust })
    } catch (error) {
      throw isNotSent(error) ? asNotReached(error) : error
    }
  }
}

/** What Bun reports when it rejects the certificate of a server, which is before it writes the request. */
const rejectedCertificate = new Set([
  ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'],
  ...['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID', 'ERR_TLS_CERT_ALTNAME_INVALID'],
])

/**
 * Whether the error of a POST proves that nothing was sent: no address, no connection, or a rejected certificate. Bun
 * reports a reused connection that breaks as ECONNRESET and does not send a POST again. Deno sends it again, and then
 * reports the refused second connection, so its errors, which have no code, prove nothing. The same holds for a failed
 * handshake (EPROTO), which can follow the request.
 */
function isNotSent(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code = '', syscall } = error as NodeJS.ErrnoException
  return code === 'ECONNREFUSED' || syscall === 'getaddrinfo' || rejectedCertificate.has(code)
}
