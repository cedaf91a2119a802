// What a budget would have refused: past usage, hour by hour, against its windows. Only where a counter runs out within an hour does it
// need the single requests of that hour. It knows no database.
import type { Amounts, Budget } from './budget.ts'

/** What a counter would have met. `share`: the most that it used of a window. Times in milliseconds. */
export type SimulatedCounter = {
  counter: string
  requests: number
  refused: number
  firstRefusedAt: number | null
  share: number
}

export type Simulation = {
  /** Takes the sums of an hour by counter. Returns those that run out within it, of which each request is taken in instead. */
  addHour: (start: number, sums: ReadonlyMap<string, Amounts>) => Set<string>
  /** Takes a request of such a counter. */
  addRequest: (counter: string, at: number, used: Amounts) => void
  /** Takes the sum of such a counter whose requests are not known any more: the part that fits is admitted. */
  addEstimate: (counter: string, start: number, sum: Amounts) => void
  counters: () => SimulatedCounter[]
}

type CounterState = SimulatedCounter & { windows: (Amounts & { start: number })[] }

/** Hours are given in order. What would have been refused is not used. */
export function createSimulation(budget: Budget): Simulation {
  const counters = new Map<string, CounterState>()

  function countedOf(counter: string, at: number): CounterState {
    const known = counters.get(counter) ?? {
      ...{ counter, requests: 0, refused: 0, firstRefusedAt: null, share: 0 },
      windows: budget.windows.map(() => ({ start: -1, nanodollars: 0, tokens: 0, requests: 0 })),
    }
    counters.set(counter, known)
    for (const [index, { periodAt }] of budget.windows.entries()) {
      const { start } = periodAt(at)
      if (known.windows[index]?.start !== start)
        known.windows[index] = { start, nanodollars: 0, tokens: 0, requests: 0 }
    }
    return known
  }

  /** The least part of this that fits into all windows; 1 if all of it does, and 0 once one of them is spent. */
  function fittingPart({ counter, windows }: CounterState, at: number, sum: Amounts): number {
    return Math.min(
      1,
      ...windows.map((used, index) => {
        const limit = budget.limitOf(counter, index, at)
        return Math.min(...measures.map((measure) => partOf(limit[measure] - used[measure], sum[measure])))
      }),
    )
  }

  function admit(counted: CounterState, at: number, sum: Amounts): void {
    counted.requests += sum.requests
    for (const [index, used] of counted.windows.entries()) {
      const limit = budget.limitOf(counted.counter, index, at)
      for (const measure of measures) {
        used[measure] += sum[measure]
        if (used[measure] > 0) counted.share = Math.max(counted.share, used[measure] / limit[measure])
      }
    }
  }

  function refuse(counted: CounterState, at: number, requests: number): void {
    counted.requests += requests
    counted.refused += requests
    counted.firstRefusedAt = Math.min(counted.firstRefusedAt ?? at, at)
  }

  return {
    addHour: (start, sums) => {
      const runningOut = new Set<string>()
      for (const [counter, sum] of sums) {
        const counted = countedOf(counter, start)
        const part = fittingPart(counted, start, sum)
        if (part === 0) refuse(counted, start, sum.requests)
        else if (part < 1 || (sum.requests > 1 && spendsAll(budget, counted, start, sum))) runningOut.add(counter)
        else admit(counted, start, sum)
      }
      return runningOut
    },
    addRequest: (counter, at, used) => {
      const counted = countedOf(counter, at)
      if (fittingPart(counted, at, used) > 0) admit(counted, at, used)
      else refuse(counted, at, used.requests)
    },
    addEstimate: (counter, start, sum) => {
      const counted = countedOf(counter, start)
      const part = fittingPart(counted, start, sum)
      const requests = Math.ceil(sum.requests * part)
      admit(counted, start, { requests, tokens: sum.tokens * part, nanodollars: sum.nanodollars * part })
      if (requests < sum.requests) refuse(counted, start, sum.requests - requests)
    },
    counters: () => [...counters.values()].map(({ windows: _windows, ...counted }) => counted),
  }
}

/** Whether this spends a window to the last token or dollar: a request after that is refused, though it adds nothing. */
function spendsAll(budget: Budget, { counter, windows }: CounterState, at: number, sum: Amounts): boolean {
  return windows.some((used, index) => {
    const limit = budget.limitOf(counter, index, at)
    return used.tokens + sum.tokens >= limit.tokens || used.nanodollars + sum.nanodollars >= limit.nanodollars
  })
}

const measures = ['nanodollars', 'tokens', 'requests'] as const

function partOf(left: number, wanted: number): number {
  if (left <= 0) return 0
  return wanted <= left ? 1 : left / wanted
}
