// The policies that become inactive when something that they refer to is removed or disabled.

import type { Policy } from '../../federation/policy.ts'
import { checkEligibility, readBinding } from '../../federation/policy-binding.ts'
import type { AdminContext } from '../operation/context.ts'

/** A response lists them only if there are any. */
export type Affected = { policies_affected?: string[] }

/** The names of the active policies that `names` selects. Call it before the change. */
export function readAffected(
  { registry, now }: Pick<AdminContext, 'registry' | 'now'>,
  names: (policy: Policy) => boolean,
): Affected {
  const affected = [...registry.policies.values()].filter((policy) => {
    if (!names(policy)) return false
    const binding = readBinding(registry, policy.id)
    return binding !== undefined && checkEligibility(binding, now()) === undefined
  })
  return affected.length === 0 ? {} : { policies_affected: affected.map(({ name }) => name) }
}
