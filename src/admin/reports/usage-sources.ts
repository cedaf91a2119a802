// What a report on usage is read from: totals where they know enough, or the ledger. It knows no names and no responses.
import { hasHours, reportHours } from '../../../db/read/usage-hours.ts'
import { type DaysFilter, reportDays, reportLedger, type UsageReport } from '../../../db/read/usage-report.ts'
import { isServed, reportServed } from '../../../db/read/usage-served.ts'
import type { UsageGrouping } from '../../../db/schema/usage-groupings.ts'
import type { UsageFilter } from '../../../db/tables/usage.ts'
import type { Needs } from '../operation/context.ts'

/** Of the ledger, or totals by hour: a second or two of reading. */
export const rowsReadMax = 1_000_000

type Days = Pick<DaysFilter, 'firstDay' | 'lastDay' | 'perDay' | 'withDays'>

/** From the totals by day where they know enough, from those by hour, or from the newest rows of the ledger. `from` says which. */
export async function readGroups(
  context: Needs<'reader' | 'registry' | 'onProgress'>,
  by: UsageGrouping,
  filter: UsageFilter & { organizationId: string },
  days: Days,
): Promise<UsageReport & { from: 'days' | 'hours' | 'ledger'; cutAt: number | undefined }> {
  const { reader, registry, onProgress } = context
  const { organizationId, keyId, policyId, issuerId, subject } = filter
  const isOfAll = [keyId, policyId, issuerId, subject].every((each) => each === undefined)
  if (isServed(by) && isOfAll) {
    const found = await reportServed(reader, by, { ...days, organizationId }, { rowsMax: rowsReadMax, onProgress })
    return { ...found, from: 'days' }
  }
  if (issuerId !== undefined || subject !== undefined || !hasHours(by)) {
    const found = await reportLedger(reader, by, filter, { rowsMax: rowsReadMax, onProgress })
    return { ...found, from: 'ledger' }
  }
  if ((by === 'key' || by === 'day') && policyId === undefined) {
    const keyIds = keyId === undefined ? undefined : [keyId]
    return { ...(await reportDays(reader, by, { ...days, organizationId, keyIds })), from: 'days', cutAt: undefined }
  }
  const among = registry.organizations.size === 1 ? undefined : organizationId
  const found = await reportHours(reader, by, { ...days, organizationId: among, keyId, policyId }, rowsReadMax)
  return { ...found, from: 'hours' }
}
