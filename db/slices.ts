// Reads long tables in slices. libSQL steps all rows of a statement without giving way, so a report is many statements of few rows, and
// the event loop turns to others in between. It knows no table.
import { nextSlice, sliceMilliseconds } from './pace.ts'

/** Rows by their numbers: `from` on, and before `until`. */
export type RowRange = { from: number; until: number }

/** Told after each slice: how many rows a report has looked at, and of how many. What it throws ends the report. */
export type OnProgress = (done: number, total: number) => void

/** How many rows a slice may look at, whatever the last one took: the next may hold more of what is looked for. */
const sliceRowsFirst = 500
const sliceRowsMin = 500
const sliceRowsMax = 4_000
/** Rows that a slice gives back one by one; each costs as much as it takes to look at ten. */
const sliceRowsListedMax = 100

/** What `read` gives for each slice, the oldest rows first. */
export async function* readInSlices<Result>(
  { from, until }: RowRange,
  read: (slice: RowRange) => Promise<Result>,
  onProgress: OnProgress = () => {},
): AsyncGenerator<Result> {
  let rows = sliceRowsFirst
  for (let start = from; start < until; ) {
    const end = Math.min(start + rows, until)
    const { result, milliseconds } = await readTimed(() => read({ from: start, until: end }))
    yield result
    start = end
    rows = nextRows(rows, milliseconds)
    onProgress(start - from, until - from)
  }
}

export type Listing<Row, Shown> = {
  rows: RowRange
  limit: number
  /** Those of a slice, in descending order of their ids, and no more than it is told. */
  read: (slice: RowRange, limit: number) => Promise<Row[]>
  show: (row: Row) => Shown
}

/** The newest rows first, up to a limit, each as `show` gives it. */
export async function listInSlices<Row extends { id: number }, Shown>(
  { rows: { from, until }, limit, read, show }: Listing<Row, Shown>,
  onProgress: OnProgress = () => {},
): Promise<Shown[]> {
  const shown: Shown[] = []
  let width = sliceRowsFirst
  for (let end = until; end > from && shown.length < limit; ) {
    const start = Math.max(end - width, from)
    const most = Math.min(limit - shown.length, sliceRowsListedMax)
    const { result, milliseconds } = await readTimed(() => read({ from: start, until: end }, most))
    for (const row of result) shown.push(show(row))
    // Where a slice gives as many as it may, there may be more in it.
    end = result.length < most ? start : (result.at(-1)?.id ?? start)
    width = nextRows(width, milliseconds)
    onProgress(until - end, until - from)
  }
  return shown
}

async function readTimed<Result>(read: () => Promise<Result>): Promise<{ result: Result; milliseconds: number }> {
  await nextSlice()
  const startedAt = performance.now()
  const result = await read()
  return { result, milliseconds: performance.now() - startedAt }
}

function nextRows(rows: number, milliseconds: number): number {
  const fitting = (rows * sliceMilliseconds) / Math.max(milliseconds, 0.1)
  const steady = Math.min(Math.max(fitting, rows / 2), 2 * rows)
  return Math.round(Math.min(Math.max(steady, sliceRowsMin), sliceRowsMax))
}
