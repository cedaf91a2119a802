// Organizations, their workspaces and their users (who have keys).
import { and, eq, or } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type Organization, organizations, type User, users, type Workspace, workspaces } from '../schema/schema.ts'
import type { Statement } from '../write/rows.ts'

export function listOrganizations(orm: Orm): Promise<Organization[]> {
  return orm.select().from(organizations).orderBy(organizations.createdAt, organizations.name)
}

export function insertOrganization(orm: Orm, row: Organization): Statement {
  return orm.insert(organizations).values(row)
}

export function updateOrganization(orm: Orm, id: string, change: Partial<Organization>): Statement {
  return orm.update(organizations).set(change).where(eq(organizations.id, id))
}

export function listWorkspaces(orm: Orm, organizationId: string): Promise<Workspace[]> {
  return orm
    .select()
    .from(workspaces)
    .where(eq(workspaces.organizationId, organizationId))
    .orderBy(workspaces.createdAt, workspaces.name)
}

export async function findWorkspace(
  orm: Orm,
  organizationId: string,
  idOrName: string,
): Promise<Workspace | undefined> {
  const named = or(eq(workspaces.id, idOrName), eq(workspaces.name, idOrName))
  const [row] = await orm
    .select()
    .from(workspaces)
    .where(and(eq(workspaces.organizationId, organizationId), named))
  return row
}

export function insertWorkspace(orm: Orm, row: Workspace): Statement {
  return orm.insert(workspaces).values(row)
}

export async function findUser(orm: Orm, organizationId: string, idOrName: string): Promise<User | undefined> {
  const named = or(eq(users.id, idOrName), eq(users.name, idOrName))
  const [row] = await orm
    .select()
    .from(users)
    .where(and(eq(users.organizationId, organizationId), named))
  return row
}

export function insertUser(orm: Orm, row: User): Statement {
  return orm.insert(users).values(row)
}
