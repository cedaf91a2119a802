// The revision of everything that administrators can change: it names the newest record of a change.
import { hash } from 'node:crypto'
import { newestChangeId } from '../../../db/admin-changes.ts'
import type { AdminContext } from '../operation/context.ts'

/** Changes of other organizations change it too. It says nothing about them, not even how many they are. */
export async function configurationRevision({ orm }: Pick<AdminContext, 'orm'>, organizationId: string) {
  return hash('sha256', `${organizationId} ${await newestChangeId(orm)}`, 'base64url').slice(0, 22)
}
