// Loads several servers under the same conditions: arms take turns in every round, in another order each time, because the second of a
// round measures about 5 % more than the first.
import { type Contestant, cpuMicroseconds, median, quantile, residentMegabytes, rounds } from './measure.ts'
import { addRound, type Figures, type Result } from './report.ts'

export type Cell = {
  load: string
  concurrency: number
  /** How long an arm is loaded in each round. */
  milliseconds: number
  /** Milliseconds between the first requests, without which requests that all take the same time stay in step. */
  stagger?: number
}

export type Contest<Arm extends Contestant> = {
  bench: string
  arms: Arm[]
  cells: Cell[]
  /**
   * How long each arm is loaded before the first round, for each kind of load at its busiest: until compilers have done their work. A quarter
   * of it goes before other concurrencies, and before each measurement: the runtime forgets compiled code that nobody ran while others had
   * their turns, which a server with steady load never sees.
   */
  warmUpMilliseconds: number
  /** One request. Returns the milliseconds to its first byte, where these are of interest. */
  act: (arm: Arm, cell: Cell, index: number) => Promise<number | undefined>
  /** Called before an arm is loaded. What it returns is called after it, and gives more figures of so many requests. */
  watch?: (arm: Arm, cell: Cell) => Promise<(done: number) => Promise<Figures>>
  /** Called for an arm of others that failed and is left out from then on. */
  onFailure: (arm: string, error: unknown) => void
}

/**
 * The results of all rounds. An arm that fails loses all its results.
 * @throws what a request to Latchkey throws
 */
export async function contest<Arm extends Contestant>(options: Contest<Arm>): Promise<Result[]> {
  const { bench, arms, cells, warmUpMilliseconds, onFailure } = options
  const results = new Map<string, Result>()
  const failed = new Set<string>()
  const attempt = async (arm: Arm, work: () => Promise<void>) => {
    if (failed.has(arm.name)) return
    try {
      await work()
    } catch (error) {
      if (arm.name.startsWith('latchkey')) throw error
      failed.add(arm.name)
      onFailure(arm.name, error)
    }
  }
  // Each concurrency has its own code, such as the commit of one row, and the busiest has most of it.
  for (const load of new Set(cells.map((cell) => cell.load))) {
    const ofLoad = cells
      .filter((cell) => cell.load === load)
      .toSorted((one, other) => other.concurrency - one.concurrency)
    for (const [index, cell] of ofLoad.entries()) {
      const milliseconds = index === 0 ? warmUpMilliseconds : warmUpMilliseconds / 4
      for (const arm of arms)
        await attempt(arm, async () => void (await drive(arm, { ...cell, milliseconds }, options.act)))
    }
  }
  for (let round = 0; round < rounds; round++)
    for (const cell of cells)
      for (const arm of orderOf(arms, round))
        await attempt(arm, async () => {
          const figures = await measureArm(arm, cell, options)
          const { load, concurrency } = cell
          const name = [load, concurrency, arm.name].join()
          const result = results.get(name) ?? { bench, load, concurrency, arm: arm.name, figures: {} }
          results.set(name, result)
          addRound(result, figures)
        })
  const order = new Map(arms.map(({ name }, index) => [name, index]))
  return [...results.values()]
    .filter(({ arm }) => !failed.has(arm))
    .toSorted((one, other) => (order.get(one.arm) ?? 0) - (order.get(other.arm) ?? 0))
}

/** Begins with another arm in every round, and goes backwards in every second one. */
export function orderOf<Arm>(arms: Arm[], round: number): Arm[] {
  const start = round % Math.max(1, arms.length)
  const rotated = [...arms.slice(start), ...arms.slice(0, start)]
  return round % 2 === 0 ? rotated : rotated.toReversed()
}

async function measureArm<Arm extends Contestant>(
  arm: Arm,
  cell: Cell,
  { act, watch, warmUpMilliseconds }: Pick<Contest<Arm>, 'act' | 'watch' | 'warmUpMilliseconds'>,
): Promise<Figures> {
  await drive(arm, { ...cell, milliseconds: warmUpMilliseconds / 4 }, act)
  Bun.gc(true)
  const report = await watch?.(arm, cell)
  const before = cpuOf(arm)
  const { seconds, latencies, firstBytes } = await drive(arm, cell, act)
  const used = cpuOf(arm) - before
  const done = latencies.length * (arm.each ?? 1)
  return {
    cpuMicroseconds: used / done,
    perSecond: done / seconds,
    p50Milliseconds: median(latencies),
    p99Milliseconds: quantile(latencies, 0.99),
    ...(firstBytes.length > 0 ? { firstByteMilliseconds: median(firstBytes) } : {}),
    rssMegabytes: residentMegabytes(arm.pid),
    ...(await report?.(done)),
  }
}

function cpuOf({ pid, others = [] }: Contestant): number {
  return [pid, ...others].reduce((sum, each) => sum + cpuMicroseconds(each), 0)
}

/** Sends requests, so many at once, until the time is over; those that have begun end. */
export async function drive<Arm extends Contestant>(
  arm: Arm,
  cell: Cell,
  act: Contest<Arm>['act'],
): Promise<{ seconds: number; latencies: number[]; firstBytes: number[] }> {
  const latencies: number[] = []
  const firstBytes: number[] = []
  const startedAt = performance.now()
  let next = 0
  const worker = async (_: unknown, place: number) => {
    if (cell.stagger !== undefined) await Bun.sleep(place * cell.stagger)
    while (performance.now() - startedAt < cell.milliseconds) {
      const sentAt = performance.now()
      const firstByte = await act(arm, cell, next++)
      latencies.push(performance.now() - sentAt)
      if (firstByte !== undefined) firstBytes.push(firstByte)
    }
  }
  await Promise.all(Array.from({ length: cell.concurrency }).map(worker))
  return { seconds: (performance.now() - startedAt) / 1_000, latencies, firstBytes }
}
