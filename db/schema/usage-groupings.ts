// The groupings for usage totals. They have their own file because commands need the names without the database.

export const usageGroupings = [
  'key',
  'policy',
  'subject',
  'attribution',
  'model',
  'preset',
  'upstream',
  'user',
  'session',
  'day',
] as const
export type UsageGrouping = (typeof usageGroupings)[number]
