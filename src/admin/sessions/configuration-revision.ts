// The revision of everything that administrators can change: it names the newest record of a change.
import { createHmac } from 'node:crypto'
import { newestChangeId } from '../../../db/tables/admin-changes.ts'
import type { Needs } from '../operation/context.ts'

export type RevisionContext = { revisionKey: Buffer }

/** Derives the key of revisions from the master key, in hexadecimal digits: every node has the same. */
export function createRevisionKey(masterKey: string): Buffer {
  return createHmac('sha256', Buffer.from(masterKey, 'hex')).update('configuration revisions').digest()
}

/**
 * Changes of other organizations change it too. It says nothing about them: without the key, nobody can try out which
 * number of changes has this revision.
 */
export async function configurationRevision(
  { orm, revisionKey }: Needs<'orm'> & RevisionContext,
  organizationId: string,
): Promise<string> {
  const text = `${organizationId} ${await newestChangeId(orm)}`
  return createHmac('sha256', revisionKey).update(text).digest('base64url').slice(0, 22)
}
