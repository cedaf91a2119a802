// When the groups of a report of usage were last used: by values of the ledger, or by a label of the keys.
import { readUsedAt } from '../../../db/read/usage-used-at.ts'
import type { UsageGrouping } from '../../../db/schema/usage-groupings.ts'
import type { UsageFilter } from '../../../db/tables/usage.ts'
import type { Needs } from '../operation/context.ts'
import type { RowNames } from './row-names.ts'

/** By the values of a group as JSON, in milliseconds. `label` groups keys by it; at most the newest `rowsMax` requests are read. */
export async function usedAtOf(
  { reader, onProgress }: Needs<'reader' | 'onProgress'>,
  by: UsageGrouping,
  { label, rowsMax, ...filter }: UsageFilter & { label: string | undefined; rowsMax: number },
  names: RowNames,
): Promise<Map<string, number>> {
  const found = await readUsedAt(reader, by, filter, { rowsMax, onProgress })
  if (label === undefined) return found
  const ofLabel = new Map<string, number>()
  for (const [values, at] of found) {
    const [keyId] = JSON.parse(values) as [string]
    const name = JSON.stringify([(await names.key(keyId))?.labels?.[label] ?? null])
    ofLabel.set(name, Math.max(ofLabel.get(name) ?? 0, at))
  }
  return ofLabel
}
