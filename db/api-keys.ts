// API keys: the SHA-256 of each, its kind, state, workspace and owner. The key itself is never here.
import { eq, inArray } from 'drizzle-orm'
import type { Orm } from './open.ts'
import type { Statement } from './rows.ts'
import { type ApiKey, apiKeys, users, workspaces } from './schema.ts'

export type ApiKeyWithNames = { key: ApiKey; workspaceName: string; ownerName: string }

function selectWithNames(orm: Orm) {
  return orm
    .select({ key: apiKeys, workspaceName: workspaces.name, ownerName: users.name })
    .from(apiKeys)
    .innerJoin(workspaces, eq(workspaces.id, apiKeys.workspaceId))
    .innerJoin(users, eq(users.id, apiKeys.ownerId))
}

/** Keys with the names around them, by id: as many as a slice may hold. */
export function listApiKeys(orm: Orm, ids: string[]): Promise<ApiKeyWithNames[]> {
  return selectWithNames(orm).where(inArray(apiKeys.id, ids))
}

/** One key with the names around it, deleted or not. */
export async function readApiKey(orm: Orm, id: string): Promise<ApiKeyWithNames | undefined> {
  const [row] = await selectWithNames(orm).where(eq(apiKeys.id, id))
  return row
}

export function insertApiKey(orm: Orm, row: ApiKey): Statement {
  return orm.insert(apiKeys).values(row)
}

export function updateApiKey(orm: Orm, id: string, change: Partial<ApiKey>): Statement {
  return orm.update(apiKeys).set(change).where(eq(apiKeys.id, id))
}
