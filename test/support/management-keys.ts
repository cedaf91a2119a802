// A running Latchkey with what tests of administration over HTTP call it with: management keys, a read-only one, and one of another
// organization.
import { type Federation, type Row, startFederation } from './latchkey.ts'
import { createApiCaller } from './openapi.ts'

export type Managed = {
  federation: Federation
  /** Checks every response against the OpenAPI document. */
  call: Awaited<ReturnType<typeof createApiCaller>>
  admin: string
  /** May only read. */
  reader: string
  /** A management key of the organization `other`. */
  stranger: string
}

export async function startManaged(): Promise<Managed> {
  const federation = await startFederation()
  const create = async (name: string, kind: string, organization = 'default') =>
    (await federation.admin<Row & { key: string }>('keys.create', { name, kind, organization })).key
  const admin = await create('admin', 'management')
  const reader = await create('reader', 'management_read_only')
  await federation.admin('organizations.create', { name: 'other' })
  const stranger = await create('stranger', 'management', 'other')
  return { federation, call: await createApiCaller(federation.server.baseUrl), admin, reader, stranger }
}
