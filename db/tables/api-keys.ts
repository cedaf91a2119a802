// API keys: the SHA-256 hash, kind, state, workspace and user of each. The key itself is not stored.
import { eq, inArray, max } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type ApiKey, apiKeys, users, workspaces } from '../schema/schema.ts'
import { createRowBulks, type Statement } from '../write/rows.ts'

export type ApiKeyWithNames = { key: ApiKey; workspaceName: string; userName: string }

function selectWithNames(orm: Orm) {
  return orm
    .select({ key: apiKeys, workspaceName: workspaces.name, userName: users.name })
    .from(apiKeys)
    .innerJoin(workspaces, eq(workspaces.id, apiKeys.workspaceId))
    .innerJoin(users, eq(users.id, apiKeys.userId))
}

/** Reads the keys with these ids, with the names of their workspace and user. Pass at most one slice of ids. */
export function listApiKeys(orm: Orm, ids: string[]): Promise<ApiKeyWithNames[]> {
  return selectWithNames(orm).where(inArray(apiKeys.id, ids))
}

/** Reads one key with the names of its workspace and user, even if the key is deleted. */
export async function readApiKey(orm: Orm, id: string): Promise<ApiKeyWithNames | undefined> {
  const [row] = await selectWithNames(orm).where(eq(apiKeys.id, id))
  return row
}

/** When the newest key was created, in milliseconds since 1970 UTC; 0 without keys. Reads the whole table. */
export async function newestKeyTime(orm: Orm): Promise<number> {
  const [row] = await orm.select({ at: max(apiKeys.createdAt) }).from(apiKeys)
  return row?.at ?? 0
}

/** Of many keys at once. */
export const apiKeyBulks = createRowBulks<ApiKey>(apiKeys, ['organizationId'])

export function insertApiKey(orm: Orm, row: ApiKey): Statement {
  return orm.insert(apiKeys).values(row)
}

export function updateApiKey(orm: Orm, id: string, change: Partial<ApiKey>): Statement {
  return orm.update(apiKeys).set(change).where(eq(apiKeys.id, id))
}
