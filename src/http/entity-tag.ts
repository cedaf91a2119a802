// The ETag of something that admins change: the time of its last change. A change can name the version that it is based on (RFC 9110 §13.1.1).
import { Fault } from '../fault.ts'

/** The header for a response about one thing; empty for a response without `updated_at`. */
export function entityTag(shown: unknown): { etag?: string } {
  if (typeof shown !== 'object' || shown === null || !('updated_at' in shown)) return {}
  return { etag: `"${String(shown.updated_at)}"` }
}

/** What a change sends on as `if_match`: nothing without the header. */
export function ifMatchOf({ headers }: Request): { if_match?: string } {
  const given = headers.get('if-match')
  return given === null ? {} : { if_match: given }
}

/**
 * Checks `If-Match` when a change has its turn. `found`: undefined where there is nothing to change yet, which no tag matches; `updatedAt` in
 * milliseconds. `show` is for what has no path.
 * @throws Fault `precondition_failed` if there is a newer version, or nothing
 */
export function checkUnchanged(
  found: { updatedAt: number } | undefined,
  ifMatch: string | undefined,
  show?: () => unknown,
): void {
  if (ifMatch === undefined) return
  const known = ifMatch.split(',').map((each) => each.trim())
  if (found !== undefined) {
    const tag = `"${new Date(found.updatedAt).toISOString()}"`
    if (known.includes('*') || known.includes(tag)) return
  }
  const message = 'Somebody changed this in the meantime: read it again and repeat the change'
  throw new Fault('precondition_failed', message, show === undefined ? {} : { current: show() })
}

/** Adds the current state to the refusal of a change, so that its caller can compare, and repeat the change with the `ETag`. */
export async function withCurrent<Result>(change: Promise<Result>, read: () => Promise<unknown>): Promise<Result> {
  try {
    return await change
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'precondition_failed') throw error
    const current = error.current ?? (await read())
    throw new Fault(error.code, error.message, { current, headers: { ...entityTag(current) } })
  }
}
