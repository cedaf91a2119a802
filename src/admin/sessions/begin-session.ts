// Begins and ends sessions of the admin page, each in one commit with its record.

import type { SessionRow } from '../../../db/schema/record-schema.ts'
import { endSessions, insertSession } from '../../../db/tables/sessions.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import type { Policy } from '../../federation/policy.ts'
import type { Key } from '../../keys/api-key.ts'
import { personOf } from '../../keys/bearer.ts'
import type { Page } from '../../page/page.ts'
import { createToken, hashToken } from '../../page/session-cookie.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'

/** When a key, or a person, has more, the oldest sessions end. */
const sessionsOfKeyMax = 20

/** Whose session begins. */
export type NewSession = Pick<SessionRow, 'role' | 'openedBy' | 'clientAddress'> & {
  key: Key
  requestId: string
  /** Absent where a key or a link begins it. */
  person?: SignedIn
}

/** Whom an issuer signed in, and what the session rests on. */
export type SignedIn = Pick<SessionRow, 'providerSession'> & {
  policy: Policy
  issuer: Issuer
  subject: string
  /** How the issuer names the person, for display. */
  name: string
  validUntil: number
}

type Context = Omit<ChangeContext, 'actor' | 'operation'>

/** Returns the session with the text of its cookie, which is stored nowhere. */
export async function beginSession(
  context: Context,
  { sessions }: Page,
  { key, requestId, person, ...fields }: NewSession,
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
    ...personColumns(person),
    createdAt: at,
    usedAt: at,
    endedAt: null,
  }
  const { issuerUrl, subject } = row
  const ofKey = sessions
    .list(key.organizationId)
    .filter((each) => each.key.id === key.id && each.row.issuerUrl === issuerUrl && each.row.subject === subject)
  const oldest = ofKey.map((session) => session.row).toSorted((one, other) => other.createdAt - one.createdAt)
  const ended = oldest.slice(sessionsOfKeyMax - 1).map(({ id }) => id)
  const actor = { kind: 'key' as const, keyId: key.id, sessionId: row.id, requestId, person: personOf(row) }
  const touched = [row.id, ...ended].map((id) => ({ kind: 'session' as const, id }))
  const ending = ended.length === 0 ? [] : [endSessions(context.orm, ended, at)]
  const statements = [insertSession(context.orm, row), ...ending]
  await commit({ ...context, actor, operation: 'sessions.begin' }, statements, touched)
  return { row, token }
}

function personColumns(person: SignedIn | undefined) {
  return {
    policyId: person?.policy.id ?? null,
    policyUpdatedAt: person?.policy.updatedAt ?? null,
    issuerId: person?.issuer.id ?? null,
    issuerUpdatedAt: person?.issuer.updatedAt ?? null,
    issuerUrl: person?.issuer.issuerUrl ?? null,
    subject: person?.subject ?? null,
    person: person?.name ?? null,
    providerSession: person?.providerSession ?? null,
    validUntil: person?.validUntil ?? null,
  }
}

/** When it resolves, the session no longer counts. */
export async function endSession(context: ChangeContext, id: string): Promise<void> {
  const statements = [endSessions(context.orm, [id], context.now())]
  await commit(context, statements, [{ kind: 'session', id }])
}

/** The session that the browser had may be one of another organization, whose record does not name the new key. */
export function endAsItself(row: SessionRow, context: Context, requestId: string): Promise<void> {
  const { id, keyId } = row
  const actor = { kind: 'key' as const, keyId, sessionId: id, requestId, person: personOf(row) }
  return endSession({ ...context, actor, operation: 'sessions.end' }, id)
}
