// Past requests for simulations of budgets: those that began in an hour.
import { and, asc, eq, gte, lt } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { usage } from '../schema/record-schema.ts'
import { rangeOf, readable } from '../tables/usage.ts'
import { type RowRange, readInSlices } from './slices.ts'

/** The ledger has requests in the order in which they ended. Few take longer than this. */
const longestMilliseconds = 60 * 60 * 1_000
const rowsMax = 500

/** Reads the requests of an organization that began in an hour, in the order in which they ended. Archived ones are missing. */
export async function* readHourOfLedger(
  reader: Orm,
  organizationId: string,
  { start, end }: { start: number; end: number },
) {
  const { id, at, keyId, policyId, attribution, model, totalTokens: tokens } = usage
  const nanodollars = readable(usage.costNanodollars)
  const { from, until: last } = await rangeOf(reader, { since: start, limit: 1 })
  const later = await rangeOf(reader, { since: end + longestMilliseconds, limit: 1 })
  // It begins at most two thousandths of the ledger too early.
  const until = Math.min(last, later.from + Math.ceil((last - from) / 500) + 1)
  const read = (slice: RowRange) =>
    reader
      .select({ at, keyId, policyId, attribution, model, tokens, nanodollars })
      .from(usage)
      .where(
        and(
          gte(id, slice.from),
          lt(id, slice.until),
          gte(at, start),
          lt(at, end),
          eq(usage.organizationId, organizationId),
        ),
      )
      .orderBy(asc(id))
  yield* readInSlices({ from, until }, read, undefined, { rowsMax })
}
