// A key that takes whose usage a call is from a header belongs to a front end that is trusted with it. Access tokens have
// a verified attribution, so no policy may target such a key.
import type { ApiKey } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import { policiesNaming, type TrustRows } from '../../registry/trust-rows.ts'

/** @throws Fault `conflict` for a key with such a header that a policy targets */
export function rejectHeaderOfTarget(trust: Pick<TrustRows, 'policies'>, { id, attributeFromHeader }: ApiKey): void {
  if (attributeFromHeader === null) return
  for (const { name } of policiesNaming(trust, 'keyId', new Set([id])))
    throw new Fault(
      'conflict',
      `The policy ${JSON.stringify(name)} targets this key, so whose usage it is comes from verified tokens: remove attribute_from_header, or use another key for the front end`,
    )
}

/** @throws Fault `invalid` for the target of a policy that has such a header */
export function rejectTargetWithHeader({
  name,
  attributeFromHeader,
}: Pick<ApiKey, 'name' | 'attributeFromHeader'>): void {
  if (attributeFromHeader === null) return
  throw new Fault(
    'invalid',
    `The key ${JSON.stringify(name)} takes whose usage a call is from the header ${attributeFromHeader}: choose a key without attribute_from_header as the target`,
  )
}
