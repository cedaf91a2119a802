// What every report takes: a time to begin at, how many rows, and where the next page begins.
import type { AdminContext } from '../context.ts'
import { reportRowsDefault, reportRowsMax } from '../limits.ts'
import { type } from '../shape.ts'
import { readTime } from '../time-text.ts'
import { findOrganization } from './references.ts'

/** As JSON Schema it is a format, which every program reads. */
export const timeShape = type('string')
  .configure({ format: 'date-time' })
  .pipe((text, context) => {
    const time = readTime(text)
    return time === undefined ? context.error('a time such as 2026-11-21T09:30:00Z') : new Date(time)
  })
export const page = {
  'since?': timeShape,
  'limit?': `1 <= number.integer <= ${reportRowsMax}`,
  'before_id?': 'number.integer > 0',
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
