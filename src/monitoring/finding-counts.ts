// How many findings the doctor had at its last examination, by level, for metrics.

/** The most urgent first. */
export const findingLevels = ['error', 'warning', 'note'] as const

export type FindingCounts = {
  /** Empty before the first examination; otherwise each level, also with none. */
  read: () => ReadonlyMap<string, number>
  note: (findings: readonly { level: string }[]) => void
}

export function createFindingCounts(): FindingCounts {
  let counts: ReadonlyMap<string, number> = new Map()
  return {
    read: () => counts,
    note: (findings) => {
      counts = new Map(findingLevels.map((level) => [level, findings.filter((each) => each.level === level).length]))
    },
  }
}
