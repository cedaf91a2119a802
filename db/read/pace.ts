// Splits long work into slices. The event loop handles other work between any two slices in this process.
import { setImmediate } from 'node:timers/promises'

/** Target duration of a slice. A request that arrives meanwhile waits about this long, a few times in total. */
export const sliceMilliseconds = 2

/** A request takes several turns itself: it arrives, its upstream responds, its row is committed. Idle turns take microseconds. */
const turnsBetweenSlices = 4

let last: Promise<unknown> = Promise.resolve()

/**
 * Resolves after the event loop has turned several times since the last slice began. Several concurrent reports therefore
 * block the loop no longer than one.
 */
export function nextSlice(): Promise<unknown> {
  last = last.then(turn)
  return last
}

async function turn(): Promise<void> {
  for (let turns = 0; turns < turnsBetweenSlices; turns++) await setImmediate()
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
    // Awaiting nothing takes longer than most checks.
    const wait = pace()
    if (wait !== undefined) await wait
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
    const value = map(row)
    mapped.push(value instanceof Promise ? await value : value)
    const wait = pace()
    if (wait !== undefined) await wait
  }
  return mapped
}
