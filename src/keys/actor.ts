// Who changes something over HTTP, for the record of the change: a management key.
import type { Actor } from '../../db/admin-changes.ts'
import { isForced } from '../http/force.ts'

export function actorOf(request: Request, { id: keyId }: { id: string }, requestId: string): Actor {
  return { kind: 'key', keyId, requestId, force: isForced(request) }
}
