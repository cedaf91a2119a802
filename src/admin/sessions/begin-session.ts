// Begins and ends sessions of the admin page, each in one commit with its record.

import type { SessionRow } from '../../../db/schema/record-schema.ts'
import { endSessions, insertSession } from '../../../db/tables/sessions.ts'
import type { Key } from '../../keys/api-key.ts'
import type { Page } from '../../page/page.ts'
import { createToken, hashToken } from '../../page/session-cookie.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'

/** When a key has more, its oldest sessions end. */
const sessionsOfKeyMax = 20

/** Whose session begins. */
export type NewSession = Pick<SessionRow, 'readOnly' | 'openedBy' | 'clientAddress'> & {
  key: Key
  requestId: string
}

type Context = Omit<ChangeContext, 'actor' | 'operation'>

/** Returns the session with the text of its cookie, which is stored nowhere. */
export async function beginSession(
  context: Context,
  { sessions }: Page,
  { key, requestId, ...fields }: NewSession,
): Promise<{ row: SessionRow; token: string }> {
  const token = createToken()
  const at = context.now()
  const row: SessionRow = {
    id: crypto.randomUUID(),
    organizationId: key.organizationId,
    keyId: key.id,
    keyUpdatedAt: key.updatedAt,
    tokenSha256: hashToken(token),
    ...fields,
    createdAt: at,
    usedAt: at,
    endedAt: null,
  }
  const ofKey = sessions.list(key.organizationId).filter((session) => session.key.id === key.id)
  const oldest = ofKey.map((session) => session.row).toSorted((one, other) => other.createdAt - one.createdAt)
  const ended = oldest.slice(sessionsOfKeyMax - 1).map(({ id }) => id)
  const actor = { kind: 'key' as const, keyId: key.id, sessionId: row.id, requestId }
  const touched = [row.id, ...ended].map((id) => ({ kind: 'session' as const, id }))
  const ending = ended.length === 0 ? [] : [endSessions(context.orm, ended, at)]
  const statements = [insertSession(context.orm, row), ...ending]
  await commit({ ...context, actor, operation: 'sessions.begin' }, statements, touched)
  return { row, token }
}

/** When it resolves, the session no longer counts. */
export async function endSession(context: ChangeContext, id: string): Promise<void> {
  const statements = [endSessions(context.orm, [id], context.now())]
  await commit(context, statements, [{ kind: 'session', id }])
}
