// What usage is summed up by. On its own, since commands need the names and nothing of a database.

export const usageGroupings = ['key', 'policy', 'subject', 'model', 'preset', 'upstream', 'day'] as const
export type UsageGrouping = (typeof usageGroupings)[number]
