// An endpoint: a route with its handler and its documentation. Each handler names the context that it needs.
import type { Fault } from '../fault.ts'
import type { Peer } from '../runtime/listener.ts'
import type { OperationDoc } from './operation-doc.ts'
import type { Params, Route } from './router.ts'

/** The facts about a request that are not in it. `requestId` is a UUID of ours that sorts by time; it is returned as `x-request-id`. */
export type RequestInfo = {
  requestId: string
  peer: Peer
  clientAddress: string | null
  params: Params
  /** The database is away, and the request is served from memory. */
  isStale?: boolean
  /** An inference request that has no ledger entry yet. */
  unsettled?: UnsettledCall | undefined
}

/** An inference request whose caller is known. `model` is what its body says, which may be anything. */
export type UnsettledCall = {
  readonly organizationId: string
  readonly keyId: string
  readonly policyId: string | null
  model: unknown
}

export type Handle<Context> = (request: Request, context: Context, info: RequestInfo) => Promise<Response>

/**
 * A route that is served. `toResponse` makes the response to a fault where it does not use the common error shape. `isBesideBase`: its path is
 * relative to the folder of the base path, `/readyz` beside `/v1`. `isAtRoot`: it is relative to the host. `staleSecondsMax`: while the database
 * is away, it is served from what was true so long ago. `servesInGrace`: the same, for as long as LATCHKEY_DATABASE_GRACE says.
 */
export type ServedRoute<Context> = Route<Handle<Context>> & {
  isBesideBase?: true
  isAtRoot?: true
  staleSecondsMax?: number
  servesInGrace?: true
  toResponse?: (fault: Fault, requestId: string) => Response
}

export type Endpoint<Context> = ServedRoute<Context> & { openapi: OperationDoc }
