// Sends the requests of the database client to a database server.
import type { SendRequest } from '../../db/server-database.ts'
import { type DatabaseServer, readText } from '../database-server.ts'
import { outboundFetch } from '../runtime/outbound.ts'

/**
 * Sends the requests of the database client.
 * @throws Fault `configuration` if the certificates cannot be read
 */
export function connectTo({ caFile }: DatabaseServer): SendRequest {
  const ca = caFile === undefined ? undefined : readText('LATCHKEY_DATABASE_CA_FILE', caFile)
  return async (request, signal) => {
    const { url, method } = request
    const body = method === 'GET' ? undefined : await request.arrayBuffer()
    const headers = Object.fromEntries(request.headers)
    return outboundFetch(url, { method, headers, signal, ...(body && { body }), ...(ca !== undefined && { ca }) })
  }
}
