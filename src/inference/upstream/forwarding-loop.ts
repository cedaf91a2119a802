// Forwarding loops, in which an upstream routes back to this service: each installation has a name and recognizes it in
// `Via`.
import { hash } from 'node:crypto'
import { Fault } from '../../fault.ts'
import type { KeyRegistry } from '../../keys/bearer.ts'

/**
 * The name of this installation, also in `Via` (RFC 9110 §7.6.3). It comes from a hash of the first organization's id, so
 * it is unique and reveals nothing. Instances can be chained: each has its own name.
 */
export function nameInstallation({ organizations }: Pick<KeyRegistry, 'organizations'>): string {
  const [first] = [...organizations.values()].toSorted(
    (one, other) => one.createdAt - other.createdAt || one.id.localeCompare(other.id),
  )
  return `latchkey-${hash('sha256', first?.id ?? '', 'hex').slice(0, 8)}`
}

const message = 'Forwarding loop detected: an upstream routes back here; its administrator must change that'

/** @throws Fault `bad_gateway` for a request that has passed through this installation before */
export function rejectLoop(request: Request, { via }: { via: string }): void {
  if (request.headers.get('via')?.includes(via) === true)
    throw new Fault('bad_gateway', message, { reason: 'forwarding_loop' })
}
