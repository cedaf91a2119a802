// The log of admin changes. Each record is written in the same commit as its change; records are read newest first.
import { and, getTableColumns, getTableName, gte, inArray, lt, max, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../file/open.ts'
import { type RowRange, readInSlices } from '../read/slices.ts'
import { webhooks } from '../schema/alert-schema.ts'
import { budgets } from '../schema/budget-schema.ts'
import { bundleSigners } from '../schema/bundle-schema.ts'
import { type AdminChange, adminChanges, archives, sessions } from '../schema/record-schema.ts'
import {
  apiKeys,
  configDocuments,
  issuers,
  organizations,
  policies,
  presets,
  signingKeys,
  users,
  workspaces,
} from '../schema/schema.ts'
import { prices, upstreams } from '../schema/upstream-schema.ts'
import { createBulk, inChunks, insertion, insertRows, type Statement } from '../write/rows.ts'

export type ChangeKind = AdminChange['kind']

/** A row that a change touches. */
export type TouchedRow = { kind: ChangeKind; id: string }

/**
 * Who makes a change: a command or the local socket, a management key over HTTP, which may use a session of the admin page, or the server
 * itself. With `force`, it also changes what
 * a configuration document locks.
 */
export type Actor =
  | { kind: 'local'; osUser?: string | null; sudoUser?: string | null; force?: boolean }
  | { kind: 'server' }
  | {
      kind: 'key'
      keyId: string
      requestId: string
      sessionId?: string | undefined
      /** Whom an issuer signed in, where the session is of a person. */
      person?: Person | undefined
      force?: boolean
    }

/** A person is named by issuer and subject together. */
export type Person = { issuer: string; subject: string }

export type NewChange = Omit<AdminChange, 'id' | 'organizationId' | 'before' | 'after' | 'groupId' | 'lineage'> & {
  /** Records with the same group belong to one change. */
  groupId?: string | undefined
  /** The row before the change, as drizzle returns it. */
  before: object | undefined
}

const tables: Record<ChangeKind, SQLiteTable> = {
  organization: organizations,
  workspace: workspaces,
  key: apiKeys,
  issuer: issuers,
  policy: policies,
  signing_key: signingKeys,
  upstream: upstreams,
  price: prices,
  preset: presets,
  user: users,
  archive: archives,
  document: configDocuments,
  bundle_signer: bundleSigners,
  budget: budgets,
  webhook: webhooks,
  session: sessions,
}
/** Kinds that belong to the installation instead of one organization. */
const common: ChangeKind[] = ['signing_key', 'upstream', 'price', 'archive']
/** What `targetId` is, where it is not the id. */
const keyColumns: Partial<Record<ChangeKind, string>> = { price: 'model', archive: 'file' }
/** Records omit ciphertext and hashes of credentials; they show only whether an upstream or an issuer has one. */
const omitted = ['private_key_encrypted', 'token_sha256', 'provider_session']
const credentials: Readonly<Record<string, string>> = {
  credential_encrypted: 'has_credential',
  page_secret_encrypted: 'has_page_secret',
}

/** Who made a change, in the columns of its record. */
export function actorColumns(actor: Actor) {
  const byKey = actor.kind === 'key' ? actor : undefined
  const { keyId = null, requestId = null, sessionId = null, person } = byKey ?? {}
  const { osUser = null, sudoUser = null } = actor.kind === 'local' ? actor : {}
  const { issuer: actorIssuer = null, subject: actorSubject = null } = person ?? {}
  return { actor: actor.kind, actorKeyId: keyId, sessionId, requestId, osUser, sudoUser, actorIssuer, actorSubject }
}

/** Who changes rows of one kind, with each row before the change, as drizzle returns it. */
export type NewChanges = Omit<NewChange, 'targetId' | 'before'> & { targets: Map<string, object | undefined> }

/**
 * Returns statements that record the new state of every target, in their order. Run them after the statements that make the changes; each is
 * built when it is asked for.
 */
export function* recordChanges({ targets, ...change }: NewChanges): Generator<Statement> {
  const lineage = crypto.randomUUID()
  for (const some of inChunks([...targets])) yield { toSQL: () => recordSome(change, lineage, some) }
}

function recordSome(
  change: Omit<NewChanges, 'targets'>,
  lineage: string,
  targets: [id: string, before: object | undefined][],
): ReturnType<Statement['toSQL']> {
  const table = tables[change.kind]
  const name = getTableName(table)
  const columns = Object.entries(getTableColumns(table)).filter(([, column]) => !omitted.includes(column.name))
  const values = columns.map(([, column]) => {
    const value = `${name}.${column.name}`
    const shownAs = credentials[column.name]
    if (shownAs !== undefined) return `'${shownAs}', ${value} is not null`
    return `'${column.name}', ${column.dataType === 'json' ? `json(${value})` : value}`
  })
  const owner = change.kind === 'organization' ? 'id' : 'organization_id'
  const organization = common.includes(change.kind) ? 'null' : `${name}.${owner}`
  // The join order looks rows up by their key and records them in the order of `targets`.
  const sql = `insert into ${getTableName(adminChanges)}
    (at, actor, actor_key_id, session_id, request_id, os_user, sudo_user, actor_issuer, actor_subject, operation,
      group_id, lineage, kind, target_id, before, organization_id, after)
    select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, target.key, target.value,
      ${organization}, json_object(${values.join(', ')})
    from json_each(?) as target
      cross join ${name} on ${name}.${keyColumns[change.kind] ?? 'id'} = target.key`
  // An object of texts, which SQLite reads without parsing what is in it. As an object of JavaScript, it would begin with ids that are numbers.
  const rows = targets.map(([id, before]) => {
    const text = before === undefined ? null : JSON.stringify(columnsOf(columns, before))
    return `${JSON.stringify(id)}:${JSON.stringify(text)}`
  })
  const { at, actor, actorKeyId, sessionId, requestId, osUser, sudoUser, operation, groupId = null, kind } = change
  const who = [at, actor, actorKeyId, sessionId, requestId, osUser, sudoUser, change.actorIssuer, change.actorSubject]
  const by = [...who, operation, groupId, lineage]
  const params = [...by, kind, `{${rows.join(',')}}`]
  return { sql, params }
}

const newChanges = insertion(adminChanges)

/** Records a change whose result is already known: `before` and `after` are stored unchanged. */
export const recordKnownChange = createBulk((changes: (NewChange & { organizationId: string; after: object })[]) => {
  const lineage = crypto.randomUUID()
  const rows = changes.map((change) => ({
    ...change,
    groupId: change.groupId ?? null,
    lineage,
    before: change.before === undefined ? null : JSON.stringify(change.before),
    after: JSON.stringify(change.after),
  }))
  return [insertRows(newChanges, rows)]
})

/** Returns the JSON that SQLite builds from a row: column names as keys, flags as numbers. */
function columnsOf(columns: [string, { name: string }][], row: object): Record<string, unknown> {
  const values = row as Record<string, unknown>
  return Object.fromEntries(
    columns.map(([field, { name }]) => {
      const value = values[field]
      const shownAs = credentials[name]
      if (shownAs !== undefined) return [shownAs, Number(value !== null)]
      return [name, typeof value === 'boolean' ? Number(value) : value]
    }),
  )
}

/** The number of the newest record; 0 without any yet. */
export async function newestChangeId(orm: Orm): Promise<number> {
  const [last] = await orm.select({ id: max(adminChanges.id) }).from(adminChanges)
  return last?.id ?? 0
}

/** Lists the ids of the changes of these issuers, policies, keys and prices, oldest first. */
export async function listChangeIdsOf(orm: Orm, targetIds: readonly string[]): Promise<number[]> {
  const [last] = await orm.select({ id: max(adminChanges.id) }).from(adminChanges)
  const found: number[] = []
  const read = ({ from, until }: RowRange) =>
    orm
      .select({ id: adminChanges.id })
      .from(adminChanges)
      .where(
        and(
          gte(adminChanges.id, from),
          lt(adminChanges.id, until),
          inArray(adminChanges.kind, ['issuer', 'policy', 'key', 'price']),
          sql`${adminChanges.targetId} in (select value from json_each(${JSON.stringify(targetIds)}))`,
        ),
      )
      .orderBy(adminChanges.id)
  for await (const rows of readInSlices({ from: 1, until: (last?.id ?? 0) + 1 }, read))
    found.push(...rows.map(({ id }) => id))
  return found
}
