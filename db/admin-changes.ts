// What admins changed: written in the very commit of the change, read newest first.
import { and, desc, eq, getTableColumns, getTableName, gte, lt } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Orm } from './open.ts'
import { insertion, insertRows } from './rows.ts'
import {
  type AdminChange,
  adminChanges,
  apiKeys,
  issuers,
  organizations,
  policies,
  presets,
  prices,
  signingKeys,
  upstreams,
  workspaces,
} from './schema.ts'
import type { Statement } from './write.ts'

export type ChangeKind = AdminChange['kind']
export type NewChange = Pick<
  AdminChange,
  'at' | 'actor' | 'actorKeyId' | 'requestId' | 'operation' | 'kind' | 'targetId'
> & {
  /** The row before the change, as drizzle gives it. */
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
}
/** What belongs to the installation, not to one organization. */
const common: ChangeKind[] = ['signing_key', 'upstream', 'price']
/** Ciphertext helps no reader of the changes. */
const omitted = ['private_key_encrypted', 'credential_encrypted']

/** A statement to follow those that make the change: it notes the row as they leave it. */
export function recordChange(change: NewChange): Statement {
  const table = tables[change.kind]
  const columns = Object.entries(getTableColumns(table)).filter(([, { name }]) => !omitted.includes(name))
  const after = `json_object(${columns.map(([, { name, dataType }]) => `'${name}', ${dataType === 'json' ? `json(${name})` : name}`).join(', ')})`
  const organization = change.kind === 'organization' ? 'id' : common.includes(change.kind) ? 'null' : 'organization_id'
  const { before } = change
  const sql = `insert into ${getTableName(adminChanges)}
    (at, actor, actor_key_id, request_id, operation, kind, target_id, before, organization_id, after)
    select ?, ?, ?, ?, ?, ?, ?, ?, ${organization}, ${after} from ${getTableName(table)} where ${change.kind === 'price' ? 'model' : 'id'} = ?`
  const params = [
    change.at,
    change.actor,
    change.actorKeyId,
    change.requestId,
    change.operation,
    change.kind,
    change.targetId,
    before === undefined ? null : JSON.stringify(columnsOf(columns, before)),
    change.targetId,
  ]
  return { toSQL: () => ({ sql, params }) }
}

const newChanges = insertion(adminChanges)

/** One statement for changes of which is known beforehand what they leave; `before` and `after` are told as they are. */
export function recordKnownChanges(changes: (NewChange & { organizationId: string; after: object })[]): Statement {
  const rows = changes.map((change) => ({
    ...change,
    before: change.before === undefined ? null : JSON.stringify(change.before),
    after: JSON.stringify(change.after),
  }))
  return insertRows(newChanges, rows)
}

/** The same JSON as SQLite makes of a row: by column name, flags as numbers. */
function columnsOf(columns: [string, { name: string }][], row: object): Record<string, unknown> {
  const values = row as Record<string, unknown>
  return Object.fromEntries(
    columns.map(([field, { name }]) => {
      const value = values[field]
      return [name, typeof value === 'boolean' ? Number(value) : value]
    }),
  )
}

export type ChangeFilter = { organizationId?: string; since?: number; beforeId?: number; limit: number }

export function listChanges(
  orm: Orm,
  { organizationId, since, beforeId, limit }: ChangeFilter,
): Promise<AdminChange[]> {
  return orm
    .select()
    .from(adminChanges)
    .where(
      and(
        organizationId === undefined ? undefined : eq(adminChanges.organizationId, organizationId),
        since === undefined ? undefined : gte(adminChanges.at, since),
        beforeId === undefined ? undefined : lt(adminChanges.id, beforeId),
      ),
    )
    .orderBy(desc(adminChanges.id))
    .limit(limit)
}
