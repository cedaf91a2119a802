// What a route of administration over HTTP is: an operation at a path, its response, and who may call it.
import type { Shape } from '../../http/operation-doc.ts'
import type { OperationName } from '../operations.ts'

export type AdminRoute = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  operation: OperationName
  /** For an operation with two routes. */
  name?: string
  summary: string
  /** See `OperationDoc`. */
  rules?: string
  /** Without `data` around it, unless the operation's own answer is a list, which brings that along. */
  answer: Shape
  /** Default: 200. */
  status?: number
  isList?: true
  /** The response to a dry run, with status 200. */
  draft?: Shape
  /** The path contains all input. */
  isBare?: true
  /** It is about the whole installation: for management keys of its first organization. */
  ofInstallation?: true
  /** What a read-only management key may call. */
  isReading?: true
}
