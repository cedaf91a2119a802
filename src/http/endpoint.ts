// What an endpoint is: a route with its handler and what it says of itself. Each handler names the context that it needs.
import type { Fault } from '../fault.ts'
import type { Peer } from '../runtime/listener.ts'
import type { OperationDoc } from './operation-doc.ts'
import type { Params, Route } from './router.ts'

/** What is known of a request beside itself. `requestId` is ours, a UUID that sorts by time, and goes out as `x-request-id`. */
export type RequestInfo = { requestId: string; peer: Peer; clientAddress: string | null; params: Params }

export type Handle<Context> = (request: Request, context: Context, info: RequestInfo) => Promise<Response>

/** `toResponse` makes the response to a fault where that is not the common error shape. */
export type Endpoint<Context> = Route<Handle<Context>> & {
  openapi: OperationDoc
  toResponse?: (fault: Fault, requestId: string) => Response
}
