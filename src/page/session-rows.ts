// The sessions that the registry holds, equal to the database. Each has what it rests on as that
// was when the session was loaded: its key, and for a person the policy and the issuer.
import type { Orm } from '../../db/file/open.ts'
import type { SessionRow } from '../../db/schema/record-schema.ts'
import type { Organization } from '../../db/schema/schema.ts'
import { listSessions } from '../../db/tables/sessions.ts'
import type { Issuer } from '../federation/issuer/issuer.ts'
import type { Policy } from '../federation/policy.ts'
import type { Key } from '../keys/api-key.ts'

/** `trust`: what let the person in; absent where a key or a link began the session. */
export type KeptSession = { row: SessionRow; key: Key; trust?: Trust | undefined }
export type Trust = { policy: Policy; issuer: Issuer; plan: string | undefined }

/** By the SHA-256 of the cookie. */
export type SessionRows = Map<string, KeptSession>

export type TrustedRows = {
  keys: { get: (id: string) => Key | undefined }
  policies: { get: (id: string) => Policy | undefined }
  issuers: { get: (id: string) => Issuer | undefined }
  organizations: { get: (id: string) => Readonly<Organization> | undefined }
}
type LoadedSessions = TrustedRows & { sessions: SessionRows }

/** Loads the sessions with these ids, or all. A session does not outlive a change of what it rests on. */
export async function loadSessions(loaded: LoadedSessions, orm: Orm, ids?: string[]): Promise<void> {
  putSessions(loaded, await listSessions(orm, ids))
}

/** Loads these sessions again. One that ends while they are read stays ended. */
export async function reloadSessions(loaded: LoadedSessions, orm: Orm, ids: string[]): Promise<void> {
  const rows = await listSessions(orm, ids)
  putSessions(
    loaded,
    rows.filter(({ tokenSha256 }) => loaded.sessions.has(tokenSha256)),
  )
}

function putSessions(loaded: LoadedSessions, rows: readonly SessionRow[]): void {
  const { sessions, keys } = loaded
  for (const row of rows) {
    const key = keys.get(row.keyId)
    const trust = trustOf(loaded, row)
    const isOver = row.endedAt !== null || key?.updatedAt !== row.keyUpdatedAt || trust === 'changed'
    if (key === undefined || isOver) sessions.delete(row.tokenSha256)
    else sessions.set(row.tokenSha256, { ...(sessions.get(row.tokenSha256) ?? { key, trust }), row })
  }
}

function trustOf({ policies, issuers, organizations }: TrustedRows, row: SessionRow): Trust | undefined | 'changed' {
  if (row.policyId === null) return undefined
  const policy = policies.get(row.policyId)
  const issuer = issuers.get(row.issuerId ?? '')
  const plan = organizations.get(row.organizationId)?.plan
  const isSame = policy?.updatedAt === row.policyUpdatedAt && issuer?.updatedAt === row.issuerUpdatedAt
  return policy === undefined || issuer === undefined || !isSame ? 'changed' : { policy, issuer, plan }
}
