// Requests that go in a circle, since an inference server leads back to this service: each installation has a name, and knows its own.
import { hash } from 'node:crypto'
import { Fault } from '../../fault.ts'
import type { KeyRegistry } from '../../keys/bearer.ts'

/**
 * How an installation names itself to an upstream (RFC 9110 §7.6.3), so that a circle is seen at its second turn, and one Latchkey before
 * another is none. The id of its first organization is nobody else's, and its hash tells nothing.
 */
export function nameInstallation({ organizations }: Pick<KeyRegistry, 'organizations'>): string {
  const [first] = [...organizations.values()].toSorted(
    (one, other) => one.createdAt - other.createdAt || one.id.localeCompare(other.id),
  )
  return `1.1 latchkey-${hash('sha256', first?.id ?? '', 'hex').slice(0, 8)}`
}

/** @throws Fault `bad_gateway` for a request that has been here already */
export function rejectLoop(request: Request, { via }: { via: string }): void {
  if (request.headers.get('via')?.includes(via) === true)
    throw new Fault('bad_gateway', 'The request goes in a circle: an inference server leads back to this service')
}
