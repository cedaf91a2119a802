// What every report takes: a time to begin at, how many rows, and where the next page begins.
import type { AdminContext } from '../context.ts'
import { offsetMax, reportRowsDefault, reportRowsMax } from '../limits.ts'
import { timeShape } from '../values.ts'
import { findOrganization } from './references.ts'

export const page = {
  'since?': timeShape,
  'limit?': `1 <= number.integer <= ${reportRowsMax}`,
  'before_id?': `1 <= number.integer <= ${offsetMax}`,
} as const

/** Without an organization a report covers all of them, and for the audit also exchanges that named no policy of ours. */
export function pageOf(
  { registry }: AdminContext,
  input: { organization?: string; since?: Date; limit?: number; before_id?: number },
) {
  return {
    organizationId: input.organization === undefined ? undefined : findOrganization(registry, input.organization).id,
    since: input.since?.getTime(),
    beforeId: input.before_id,
    limit: input.limit ?? reportRowsDefault,
  }
}
