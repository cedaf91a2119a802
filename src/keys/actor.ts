// Who changes something over HTTP, for the record of the change: a management key, and the session that uses it.
import type { Actor } from '../../db/tables/admin-changes.ts'
import { isForced } from '../http/force.ts'
import type { BearerContext } from './bearer.ts'

/** The request must be authenticated. */
export function actorOf(request: Request, { callers }: Pick<BearerContext, 'callers'>, requestId: string): Actor {
  const caller = callers.get(request)
  if (caller === undefined) throw new Error('The request is not authenticated')
  return { kind: 'key', ...caller, requestId, force: isForced(request) }
}
