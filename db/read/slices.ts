// Reads long tables in slices, so that no statement keeps a snapshot for long, a caller sees progress and can leave, and a database server
// can respond. This file knows no table.
import { readFitting } from './fitting.ts'

/** A range of row ids: includes `from`, excludes `until`. */
export type RowRange = { from: number; until: number }

/** A request and its time in milliseconds since 1970 UTC, near which its row is. */
export type RequestAt = { requestId: string; at: number }

/** Called after each slice with the number of rows read and the total. An error thrown here aborts the report. */
export type OnProgress = (done: number, total: number) => void

/**
 * Rows of a slice: a few milliseconds for the second connection of a file, which holds no snapshot for longer, and a few for the caller,
 * who adds up what comes back.
 */
const sliceRows = 4_000
/** The most rows that a listing slice returns. Returning a row costs about as much as scanning ten. */
const sliceRowsListedMax = 100

type SliceOptions = {
  newestFirst?: boolean
  /** Fewer where what comes back of each row is large. */
  rowsMax?: number
}

/** Yields the result of `read` for each slice, oldest rows first unless `newestFirst` is set. */
export async function* readInSlices<Result>(
  { from, until }: RowRange,
  read: (slice: RowRange) => Promise<Result>,
  onProgress: OnProgress = () => {},
  { newestFirst = false, rowsMax = sliceRows }: SliceOptions = {},
): AsyncGenerator<Result> {
  const total = until - from
  for (let done = 0; done < total; ) {
    const readRows = (count: number) => {
      const start = newestFirst ? until - done - count : from + done
      return read({ from: start, until: start + count })
    }
    const { result, rows } = await readFitting(Math.min(rowsMax, total - done), readRows)
    yield result
    done += rows
    onProgress(done, total)
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
  for (let end = until; end > from && shown.length < limit; ) {
    const start = Math.max(end - sliceRows, from)
    const most = Math.min(limit - shown.length, sliceRowsListedMax)
    const { result, rows: taken } = await readFitting(most, (count) => read({ from: start, until: end }, count))
    for (const row of result) shown.push(show(row))
    // A slice that returns its maximum can contain more rows.
    end = result.length < taken ? start : (result.at(-1)?.id ?? start)
    onProgress(until - end, until - from)
  }
  return shown
}
