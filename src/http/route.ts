// What a route is: its method and path, its handler, and how it tells a fault. Knows no endpoint.
import type { Context } from '../context.ts'
import type { Fault } from '../fault.ts'
import type { Peer } from '../runtime.ts'
import type { Route } from './router.ts'

/** What is known of a request beside itself. `requestId` is ours, a UUID that sorts by time, and goes out as `x-request-id`. */
export type RequestInfo = { requestId: string; peer: Peer }

export type Endpoint = Route<(request: Request, context: Context, info: RequestInfo) => Promise<Response>> & {
  /** The answer for a fault, where it is not the common error shape. */
  tell?: (fault: Fault) => Response
}
