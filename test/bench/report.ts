// What the benches found, as tables for people and as JSON. A figure has one value for each round: its median is shown, and after ± half of
// what the middle half of the rounds spans, in percent.

import { median, spread } from './measure.ts'

/** The figures of one arm under one load. `concurrency` is 0 where nothing is requested. Units end the names of the figures. */
export type Result = {
  bench: string
  load: string
  concurrency: number
  arm: string
  figures: Partial<Record<FigureName, number[]>>
}

export const columns = {
  cpuMicroseconds: { title: 'CPU µs', digits: 0 },
  mainThreadMicroseconds: { title: 'of it in one thread', digits: 0 },
  perSecond: { title: 'per second', digits: 0 },
  p50Milliseconds: { title: 'p50 ms', digits: 2 },
  p99Milliseconds: { title: 'p99 ms', digits: 2 },
  p999Milliseconds: { title: 'p99.9 ms', digits: 2 },
  firstByteMilliseconds: { title: 'first byte ms', digits: 2 },
  refreshesPerRequest: { title: 'refreshes', digits: 3 },
  commitsPerRequest: { title: 'commits', digits: 3 },
  rowsPerCommit: { title: 'rows a commit', digits: 1 },
  databaseCpuMicroseconds: { title: 'database CPU µs', digits: 0 },
  overshoot: { title: 'requests beyond', digits: 0 },
  admittedPercent: { title: '% of the limit', digits: 1 },
  jainIndex: { title: "Jain's index", digits: 3 },
  offSharePercent: { title: '% off its share', digits: 1 },
  p99WaitMilliseconds: { title: 'p99 wait ms', digits: 0 },
  mostRunning: { title: 'at once', digits: 0 },
  failed: { title: 'failed', digits: 0 },
  delayedPercent: { title: '% delayed', digits: 2 },
  microseconds: { title: 'µs', digits: 2 },
  milliseconds: { title: 'ms', digits: 2 },
  bytes: { title: 'bytes', digits: 0 },
  longestMilliseconds: { title: 'longest ms', digits: 1 },
  startMilliseconds: { title: 'start ms', digits: 0 },
  startCpuMilliseconds: { title: 'CPU of start ms', digits: 0 },
  rssMegabytes: { title: 'RSS MB', digits: 0 },
  peakMegabytes: { title: 'peak MB', digits: 0 },
} as const
export type FigureName = keyof typeof columns
/** The figures of one round. */
export type Figures = Partial<Record<FigureName, number>>

/** Adds the figures of one round. */
export function addRound({ figures }: Result, round: Figures): void {
  for (const [figure, value] of Object.entries(round) as [FigureName, number][])
    figures[figure] = [...(figures[figure] ?? []), value]
}

/** One table for each load, with the figures that its arms have. */
export function printResults(results: Result[], print: (line: string) => void): void {
  const loads = Map.groupBy(results, ({ bench, load, concurrency }) =>
    [`${bench}: ${load}`, ...(concurrency > 0 ? [`concurrency ${concurrency}`] : [])].join(', '),
  )
  for (const [title, arms] of loads) {
    const names = (Object.keys(columns) as FigureName[]).filter((name) => arms.some(({ figures }) => name in figures))
    const lines = [
      [title, ...names.map((name) => columns[name].title)],
      ...arms.map(({ arm, figures }) => [`  ${arm}`, ...names.map((name) => showFigure(name, figures[name]))]),
    ]
    print('')
    for (const line of alignColumns(lines)) print(line)
  }
}

function showFigure(name: FigureName, values: number[] = []): string {
  if (values.length === 0) return '–'
  const middle = median(values)
  const percent = middle === 0 ? 0 : (100 * spread(values)) / middle
  return `${middle.toFixed(columns[name].digits)} ±${percent.toFixed(0).padStart(2)} %`
}

/** The first column to the left, the others to the right. */
export function alignColumns(lines: string[][]): string[] {
  const widths = (lines[0] ?? []).map((_, index) => Math.max(...lines.map((line) => (line[index] ?? '').length)))
  return lines.map((line) =>
    line
      .map((text, index) => (index === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[index] ?? 0)))
      .join('  '),
  )
}
