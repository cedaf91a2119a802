// Long work in slices: the event loop turns to others between any two slices of this process, whatever they belong to.
import { setImmediate } from 'node:timers/promises'

/** What a slice should take. Requests that are served meanwhile wait so long, a few times each. */
export const sliceMilliseconds = 5

let last: Promise<unknown> = Promise.resolve()

/** Resolves when the event loop has turned since the last slice began: several reports at once hold it no longer than one. */
export function nextSlice(): Promise<unknown> {
  last = last.then(() => setImmediate())
  return last
}

/** To be awaited in every round of a loop: gives way when the loop has taken as long as a slice should. */
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

/** As `map` of an array does, in slices. */
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
