// The sessions of the admin page, in memory. A session ends after 30 minutes without use, after 8 hours, and at once when its key
// changes; that of a person also when its policy, issuer or plan changes, or the issuer does not confirm it.
// Uses are written once a minute, so a request writes nothing.
import type { Orm } from '../../db/file/open.ts'
import { nextSlice } from '../../db/read/pace.ts'
import type { SessionRow } from '../../db/schema/record-schema.ts'
import { dropSessions, putSessionUses } from '../../db/tables/sessions.ts'
import type { Writer } from '../../db/write/write.ts'
import { Fault } from '../fault.ts'
import { isEntitled } from '../federation/policy-binding.ts'
import { keyStateOf } from '../keys/api-key.ts'
import { withRole } from '../keys/roles.ts'
import { type KeptSession, reloadSessions, type SessionRows, type TrustedRows } from './session-rows.ts'

const idleMillisecondsMax = 30 * 60_000
export const lifetimeSecondsMax = 8 * 60 * 60
const ageMillisecondsMax = lifetimeSecondsMax * 1_000
/** A clock that is set back by more than this ends sessions, since their age is unknown. */
const clockBackMillisecondsMax = 60_000
/** More would hold up requests for longer than a slice. */
const idsPerRead = 200

/** A session in use, with its key as of now. Its key has the role of the session. */
export type Session = KeptSession

export type Sessions = {
  /** The session of a cookie. */
  find: (tokenSha256: string, use: { isUse: boolean }) => Session | undefined
  /** The session with this id. It does not count as a use. */
  get: (id: string) => Session | undefined
  list: (organizationId: string) => Session[]
  /** Commits when sessions were used since the last time, and removes those that have ended. */
  flush: () => Promise<void>
}

/** When a session ends if it is not used again. Milliseconds. */
export function endOf({ createdAt, usedAt }: Pick<SessionRow, 'createdAt' | 'usedAt'>): number {
  return Math.min(createdAt + ageMillisecondsMax, usedAt + idleMillisecondsMax)
}

export function sessionEnded(): Fault {
  return new Fault('unauthorized', 'The session has ended: sign in again', {
    reason: 'session_ended',
    headers: { 'www-authenticate': 'Bearer' },
  })
}

type Dependencies = {
  orm: Orm
  registry: TrustedRows & { sessions: SessionRows }
  writer: Pick<Writer, 'write'>
  now: () => number
}

export function createSessions({ orm, registry, writer, now }: Dependencies): Sessions {
  /** When sessions were last used, by id, and which of these times are not written yet. */
  const used = new Map<string, number>()
  const unwritten = new Map<string, number>()

  /** The session, unless it has ended. A key that was changed is another value in the registry, whatever its times say. */
  const live = (kept: KeptSession | undefined): Session | undefined => {
    if (kept === undefined) return undefined
    const { key } = kept
    const row = { ...kept.row, usedAt: Math.max(kept.row.usedAt, used.get(kept.row.id) ?? 0) }
    const at = now()
    const isUnchanged = registry.keys.get(row.keyId) === key && key.deletedAt === null && isTrusted(kept, at)
    const isInTime = at < endOf(row) && at >= row.createdAt - clockBackMillisecondsMax
    if (!isUnchanged || !isInTime || keyStateOf(key, at) !== 'enabled') return undefined
    return { ...kept, row, key: withRole(key, row.role) }
  }
  /** Of a person, whether everything that let them in still does. */
  const isTrusted = ({ row, trust }: KeptSession, at: number): boolean => {
    if (trust === undefined) return true
    const { policy, issuer, plan } = trust
    const organization = registry.organizations.get(row.organizationId)
    const isUnchanged = registry.policies.get(policy.id) === policy && registry.issuers.get(issuer.id) === issuer
    const isPlanned = organization !== undefined && organization.plan === plan && isEntitled(organization)
    const isInForce = policy.enabled && issuer.deletedAt === null && isPlanned
    return isUnchanged && isInForce && at < (row.validUntil ?? 0)
  }
  const all = () => [...registry.sessions.values()]

  return {
    find: (tokenSha256, { isUse }) => {
      const session = live(registry.sessions.get(tokenSha256))
      if (session === undefined || !isUse) return session
      const { row } = session
      for (const times of [used, unwritten]) times.set(row.id, now())
      return { ...session, row: { ...row, usedAt: now() } }
    },
    get: (id) => live(all().find(({ row }) => row.id === id)),
    list: (organizationId) =>
      all()
        .filter(({ row }) => row.organizationId === organizationId)
        .flatMap((kept) => live(kept) ?? []),
    flush: async () => {
      if (registry.sessions.size === 0) return
      const statements = [
        putSessionUses(unwritten),
        dropSessions(orm, { usedBefore: now() - idleMillisecondsMax, begunBefore: now() - ageMillisecondsMax }),
      ]
      unwritten.clear()
      await writer.write(statements)
      // Another node may have noted later uses.
      const ids = all().map(({ row }) => row.id)
      for (let start = 0; start < ids.length; start += idsPerRead) {
        await reloadSessions(registry, orm, ids.slice(start, start + idsPerRead))
        await nextSlice()
      }
      for (const [token, kept] of registry.sessions) {
        if (live(kept) !== undefined) continue
        registry.sessions.delete(token)
        used.delete(kept.row.id)
      }
    },
  }
}
