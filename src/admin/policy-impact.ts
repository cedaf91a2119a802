// Which policies exchange no longer once something that they name is taken away.

import type { Policy } from '../federation/policy.ts'
import { checkEligibility, readBinding } from '../federation/policy-binding.ts'
import type { AdminContext } from './context.ts'

/** What an answer says of them: nothing when there are none, so that it is as it always was. */
export type Affected = { policies_affected?: string[] }

/** The names of those that exchange now and rest on what `names` tells. To be asked before the change. */
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
