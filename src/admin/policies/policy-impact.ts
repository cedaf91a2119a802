// The policies that become inactive when something that they refer to is removed or disabled.

import { bindingOf, checkEligibility } from '../../federation/policy-binding.ts'
import { policiesNaming, type ReferenceColumn } from '../../registry/trust-rows.ts'
import type { Needs } from '../operation/context.ts'

/** A response lists them only if there are any. */
export type PolicyImpact = { policies_affected?: string[] }

/** The names of the active policies that name each of these keys or issuers, by its id. Call it before the change. */
export function readAffected(
  { registry, now }: Needs<'registry' | 'now'>,
  field: ReferenceColumn,
  ids: readonly string[],
): Map<string, PolicyImpact> {
  const affected = new Map<string, PolicyImpact>()
  for (const policy of policiesNaming(registry, field, new Set(ids)))
    if (checkEligibility(bindingOf(registry, policy), now()) === undefined) {
      const { policies_affected = [] } = affected.get(policy[field]) ?? {}
      affected.set(policy[field], { policies_affected: [...policies_affected, policy.name] })
    }
  return affected
}
