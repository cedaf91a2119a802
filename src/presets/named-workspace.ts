// The workspace that newer clients name on the preset endpoints, in the query or the body. A key acts in one workspace: any other gets the same
// response as one that does not exist.
import { Fault } from '../fault.ts'
import { hasMediaType, readJson } from '../http/body.ts'
import { readQuery } from '../http/input.ts'
import { operationBodyBytesMax } from '../limits.ts'
import { workspaceQuery } from './openapi.ts'

type Key = { workspaceId: string }

/** What some clients send to paths that need no body. @throws Fault `invalid` when it is not JSON */
export async function readWorkspace(request: Request): Promise<{ workspace_id?: unknown }> {
  if (!hasMediaType(request, 'application/json')) return {}
  const { workspace_id } = await readJson(request, operationBodyBytesMax)
  return { workspace_id }
}

/** For paths whose query may name the workspace and nothing else. @throws Fault `not_found` or `invalid` */
export function checkWorkspaceInQuery(key: Key, request: Request): void {
  checkWorkspace(key, readQuery(request, workspaceQuery).workspace_id)
}

/** @throws Fault `not_found` */
export function checkWorkspace({ workspaceId }: Key, named: unknown): void {
  if (named !== undefined && named !== null && named !== workspaceId) throw new Fault('not_found', 'Resource not found')
}
