// The policies that become inactive when something that they refer to is removed or disabled.

import { packedText } from '../../../db/packed-rows.ts'
import type { Policy } from '../../federation/policy.ts'
import { bindingOf, checkEligibility } from '../../federation/policy-binding.ts'
import type { AdminContext } from '../operation/context.ts'

/** A response lists them only if there are any. */
export type Affected = { policies_affected?: string[] }

/** The names of the active policies that name the key or issuer with this id. Call it before the change. */
export function readAffected(
  { registry, now }: Pick<AdminContext, 'registry' | 'now'>,
  field: keyof Pick<Policy, 'keyId' | 'issuerId'>,
  id: string,
): Affected {
  const affected = [...registry.policies.valuesWith(packedText(id))].filter(
    (policy) => policy[field] === id && checkEligibility(bindingOf(registry, policy), now()) === undefined,
  )
  return affected.length === 0 ? {} : { policies_affected: affected.map(({ name }) => name) }
}
