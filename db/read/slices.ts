// Reads long tables in slices. libSQL blocks the event loop for the whole of a statement, so a report runs many
// statements over few rows each and yields in between. This file knows no table.
import { readFitting } from './fitting.ts'
import { nextSlice, sliceMilliseconds } from './pace.ts'

/** A range of row ids: includes `from`, excludes `until`. */
export type RowRange = { from: number; until: number }

/** A request and its time in milliseconds since 1970 UTC, near which its row is. */
export type RequestAt = { requestId: string; at: number }

/** Called after each slice with the number of rows read and the total. An error thrown here aborts the report. */
export type OnProgress = (done: number, total: number) => void

/** Row limits of a slice, however fast the last one was: the next can contain more matches. */
const sliceRowsFirst = 500
const sliceRowsMin = 250
const sliceRowsMax = 4_000
/** The most rows that a listing slice returns. Returning a row costs about as much as scanning ten. */
const sliceRowsListedMax = 100

/** Yields the result of `read` for each slice, oldest rows first unless `newestFirst` is set. */
export async function* readInSlices<Result>(
  { from, until }: RowRange,
  read: (slice: RowRange) => Promise<Result>,
  onProgress: OnProgress = () => {},
  { newestFirst = false }: { newestFirst?: boolean } = {},
): AsyncGenerator<Result> {
  let rows = sliceRowsFirst
  for (let done = 0; done < until - from; ) {
    const readRows = (count: number) => {
      const start = newestFirst ? until - done - count : from + done
      return read({ from: start, until: start + count })
    }
    const { result, taken, milliseconds } = await readTimed(Math.min(rows, until - from - done), readRows)
    yield result
    done += taken
    rows = nextRows(rows, milliseconds)
    onProgress(done, until - from)
  }
}

export type Listing<Row, Shown> = {
  rows: RowRange
  limit: number
  /** Returns the matching rows of a slice in descending order of id, at most `limit`. */
  read: (slice: RowRange, limit: number) => Promise<Row[]>
  show: (row: Row) => Shown
}

/** Lists the newest rows first, up to a limit, each mapped by `show`. */
export async function listInSlices<Row extends { id: number }, Shown>(
  { rows: { from, until }, limit, read, show }: Listing<Row, Shown>,
  onProgress: OnProgress = () => {},
): Promise<Shown[]> {
  const shown: Shown[] = []
  let width = sliceRowsFirst
  for (let end = until; end > from && shown.length < limit; ) {
    const start = Math.max(end - width, from)
    const most = Math.min(limit - shown.length, sliceRowsListedMax)
    const readRows = (count: number) => read({ from: start, until: end }, count)
    const { result, taken, milliseconds } = await readTimed(most, readRows)
    for (const row of result) shown.push(show(row))
    // A slice that returns its maximum can contain more rows.
    end = result.length < taken ? start : (result.at(-1)?.id ?? start)
    width = nextRows(width, milliseconds)
    onProgress(until - end, until - from)
  }
  return shown
}

async function readTimed<Result>(rows: number, read: (rows: number) => Promise<Result>) {
  await nextSlice()
  const startedAt = performance.now()
  const { result, rows: taken } = await readFitting(rows, read)
  return { result, taken, milliseconds: performance.now() - startedAt }
}

function nextRows(rows: number, milliseconds: number): number {
  const fitting = (rows * sliceMilliseconds) / Math.max(milliseconds, 0.1)
  const steady = Math.min(Math.max(fitting, rows / 2), 2 * rows)
  return Math.round(Math.min(Math.max(steady, sliceRowsMin), sliceRowsMax))
}
