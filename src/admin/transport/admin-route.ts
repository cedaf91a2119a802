// What a route of administration over HTTP is: an operation at a path, its response, and who may call it.
import type { RouteDoc } from '../../http/documented-route.ts'
import type { OperationName } from '../operations.ts'

/** Without a name, it has that of its operation. Who may call it follows from its operation. */
export type AdminRoute = Pick<
  RouteDoc,
  'method' | 'path' | 'name' | 'summary' | 'rules' | 'data' | 'answer' | 'status' | 'draft' | 'isConditional'
> & {
  operation: OperationName
  /** The path contains all input. */
  isBare?: true
  /** It is about the whole installation: for management keys of its first organization. */
  ofInstallation?: true
}
