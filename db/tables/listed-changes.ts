// Lists the log of admin changes, newest first, by who made them, of what, and when.
import { and, desc, eq, gte, isNull, lt, ne, or, type SQLWrapper, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { listInSlices, type OnProgress, type RowRange } from '../read/slices.ts'
import { type AdminChange, adminChanges } from '../schema/record-schema.ts'
import { apiKeys } from '../schema/schema.ts'
import { type ChangeKind, newestChangeId } from './admin-changes.ts'

export type ChangeFilter = {
  organizationId?: string | undefined
  /** With what belongs to no organization. */
  withCommon?: boolean
  kind?: ChangeKind | undefined
  withoutKind?: ChangeKind | undefined
  targetId?: string | undefined
  groupId?: string | undefined
  since?: number
  /** The first time after those to include. */
  until?: number
  beforeId?: number
  afterId?: number
  /** Who made them: the subject of a person, or a key by its id. */
  by?: { subject: string; keyId: string | undefined } | undefined
  /** Who made them: a part of the subject of a person, or of the name of a key, in either case of ASCII letters. */
  byContains?: string | undefined
  limit: number
}

/** Lists changes newest first, each mapped by `show`. */
export async function listChanges<Shown>(
  orm: Orm,
  filter: ChangeFilter,
  show: (row: AdminChange) => Shown,
  onProgress?: OnProgress,
): Promise<Shown[]> {
  const { beforeId = Number.POSITIVE_INFINITY, afterId = 0, limit } = filter
  const read = ({ from, until }: RowRange, most: number) =>
    orm
      .select()
      .from(adminChanges)
      .where(and(gte(adminChanges.id, from), lt(adminChanges.id, until), matching(filter)))
      .orderBy(desc(adminChanges.id))
      .limit(most)
  const rows = { from: afterId + 1, until: Math.min(beforeId, (await newestChangeId(orm)) + 1) }
  return listInSlices({ rows, limit, read, show }, onProgress)
}

function matching(filter: ChangeFilter) {
  const {
    organizationId,
    withCommon = false,
    kind,
    withoutKind,
    targetId,
    groupId,
    by,
    byContains,
    since,
    until,
  } = filter
  const { organizationId: owner, actorKeyId, actorSubject, at } = adminChanges
  return and(
    organizationId === undefined ? undefined : or(eq(owner, organizationId), withCommon ? isNull(owner) : undefined),
    kind === undefined ? undefined : eq(adminChanges.kind, kind),
    withoutKind === undefined ? undefined : ne(adminChanges.kind, withoutKind),
    targetId === undefined ? undefined : eq(adminChanges.targetId, targetId),
    groupId === undefined ? undefined : eq(adminChanges.groupId, groupId),
    by && or(eq(actorSubject, by.subject), by.keyId === undefined ? undefined : eq(actorKeyId, by.keyId)),
    byContains === undefined ? undefined : isBySomeone(byContains),
    since === undefined ? undefined : gte(at, since),
    until === undefined ? undefined : lt(at, until),
  )
}

function isBySomeone(text: string) {
  const { actorKeyId, actorSubject } = adminChanges
  const isIn = (name: SQLWrapper) => sql`instr(lower(${name}), lower(${text})) > 0`
  return or(
    isIn(actorSubject),
    sql`exists (select 1 from ${apiKeys} where ${apiKeys.id} = ${actorKeyId} and ${isIn(apiKeys.name)})`,
  )
}
