// Splits long work into slices. The event loop handles other work between any two slices in this process.
import { setImmediate } from 'node:timers/promises'

/** Target duration of a slice. A request that arrives meanwhile waits about this long, a few times in total. */
export const sliceMilliseconds = 5

let last: Promise<unknown> = Promise.resolve()

/**
 * Resolves after the event loop has turned since the last slice began. Several concurrent reports therefore block the
 * loop no longer than one.
 */
export function nextSlice(): Promise<unknown> {
  last = last.then(() => setImmediate())
  return last
}

/** Await it in every iteration of a loop. It yields once the loop has run for the duration of a slice. */
export type Pace = () => Promise<unknown> | undefined

export function createPace(): Pace {
  let startedAt = performance.now()
  return () => {
    if (performance.now() - startedAt < sliceMilliseconds) return undefined
    return nextSlice().then(() => {
      startedAt = performance.now()
    })
  }
}

/** Filters rows like `Array.filter`, in slices. */
export async function filterInSlices<Row>(rows: Iterable<Row>, isWanted: (row: Row) => boolean): Promise<Row[]> {
  const pace = createPace()
  const wanted: Row[] = []
  for (const row of rows) {
    if (isWanted(row)) wanted.push(row)
    await pace()
  }
  return wanted
}

/** Maps rows like `Array.map`, in slices. */
export async function mapInSlices<Row, Mapped>(
  rows: Iterable<Row>,
  map: (row: Row) => Mapped | Promise<Mapped>,
): Promise<Mapped[]> {
  const pace = createPace()
  const mapped: Mapped[] = []
  for (const row of rows) {
    mapped.push(await map(row))
    await pace()
  }
  return mapped
}
