// The admin page in tests: requests as a browser sends them from the page, and sessions.
import { insertSession } from '../../db/tables/sessions.ts'
import { loadSessions } from '../../src/page/session-rows.ts'
import type { Context } from '../../src/server/context.ts'
import type { TestServer } from './latchkey.ts'

/** Adds a session of the first management key, as if somebody had signed in. */
export async function insertLiveSession({ orm, writer, registry, page, now }: Context, id: string): Promise<void> {
  const { id: keyId = '' } = [...registry.keys.values()].find(({ kind }) => kind === 'management') ?? {}
  const key = registry.keys.get(keyId)
  if (key === undefined || page === undefined) throw new Error('There is no management key, or no page')
  const row = {
    id,
    organizationId: key.organizationId,
    keyId: key.id,
    keyUpdatedAt: key.updatedAt,
    tokenSha256: crypto.randomUUID(),
    role: null,
    ...{ policyId: null, policyUpdatedAt: null, issuerId: null, issuerUpdatedAt: null, issuerUrl: null },
    ...{ subject: null, person: null, providerSession: null, validUntil: null },
    openedBy: null,
    clientAddress: null,
    createdAt: now(),
    usedAt: now(),
    endedAt: null,
  }
  await writer.write([insertSession(orm, row)])
  await loadSessions(registry, orm, [id])
}

/** The headers with which a browser marks a request of the page. */
export function fromPage({ server }: TestServer): Record<string, string> {
  return { 'sec-fetch-site': 'same-origin', origin: new URL(server.pageUrl ?? '').origin }
}

type Sent = { method?: string; body?: object; cookie?: string; headers?: Record<string, string> }

/** Sends a request as the page does. */
export function call(latchkey: TestServer, path: string, { method = 'GET', body, cookie, headers }: Sent = {}) {
  return fetch(latchkey.server.baseUrl + path, {
    method,
    headers: {
      ...fromPage(latchkey),
      ...(cookie === undefined ? {} : { cookie }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? null : JSON.stringify(body),
  })
}

/** Signs in and returns the cookie, as a `Cookie` header has it. */
export async function signIn(latchkey: TestServer, credential: { api_key: string } | { link: string }) {
  const response = await call(latchkey, '/admin/session', { method: 'POST', body: credential })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return (response.headers.get('set-cookie') ?? '').replace(/;.*/, '')
}
