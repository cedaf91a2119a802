// The columns of the ledger that the requests of a group share, and the day of a request.
import { sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { usage } from '../schema/record-schema.ts'
import type { UsageGrouping } from '../schema/usage-groupings.ts'

export const dayMilliseconds = 24 * 60 * 60 * 1_000
/** Days since 1970. */
export const dayOfRow = sql<number>`${usage.at} / ${sql.raw(String(dayMilliseconds))}`

/** Those of a day share none of them: the day follows from the time. */
export const groupColumns: Readonly<Record<UsageGrouping, Readonly<Record<string, SQLiteColumn>>>> = {
  key: { keyId: usage.keyId },
  policy: { policyId: usage.policyId },
  subject: { issuerId: usage.issuerId, subject: usage.subject },
  attribution: { attribution: usage.attribution },
  model: { model: usage.model },
  preset: { workspaceId: usage.workspaceId, presetVersion: usage.presetVersion },
  upstream: { upstream: usage.upstream },
  user: { endUser: usage.endUser },
  session: { sessionId: usage.sessionId },
  day: {},
}
