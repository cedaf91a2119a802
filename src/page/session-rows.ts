// The sessions that the registry holds, equal to the database. Each has its key as it was when the session was loaded.
import type { Orm } from '../../db/file/open.ts'
import type { SessionRow } from '../../db/schema/record-schema.ts'
import { listSessions } from '../../db/tables/sessions.ts'
import type { Key } from '../keys/api-key.ts'

export type KeptSession = { row: SessionRow; key: Key }

/** By the SHA-256 of the cookie. */
export type SessionRows = Map<string, KeptSession>

type LoadedSessions = { sessions: SessionRows; keys: { get: (id: string) => Key | undefined } }

/** Loads the sessions with these ids, or all. A session does not outlive a change of its key. */
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

function putSessions({ sessions, keys }: LoadedSessions, rows: readonly SessionRow[]): void {
  for (const row of rows) {
    const key = keys.get(row.keyId)
    const isOver = row.endedAt !== null || key?.updatedAt !== row.keyUpdatedAt
    if (key === undefined || isOver) sessions.delete(row.tokenSha256)
    else sessions.set(row.tokenSha256, { row, key: sessions.get(row.tokenSha256)?.key ?? key })
  }
}
