// Reads past usage for the simulation of a budget: totals by hour, and the single requests of the hours in which a counter runs out.
import { createPace } from '../../../db/read/pace.ts'
import { readHourOfLedger } from '../../../db/read/simulation-rows.ts'
import { type HourTotals, readHours } from '../../../db/tables/budgets.ts'
import type { Amounts, Budget, KeyFacts } from '../../spending/budget.ts'
import { hourOf, startOfHour } from '../../spending/periods.ts'
import { createSimulation, type Simulation } from '../../spending/simulation.ts'
import type { Needs } from '../operation/context.ts'

export type ReplayContext = Needs<'reader' | 'registry'>

const ledgerRowsMax = 1_000_000

/**
 * Only hours in which a counter runs out are read request by request, and of those at most `ledgerRowsMax` requests. `withoutCost`: the
 * requests whose cost is unknown.
 */
export async function replay(context: ReplayContext, budget: Budget, since: number, until: number) {
  const simulation = createSimulation(budget)
  const find = createKeyFinder(context, budget)
  const state = { rowsRead: 0, isEstimated: false }
  const pace = createPace()
  let [hour, withoutCost] = [-1, 0]
  let sums = new Map<string, Amounts>()
  const endHour = async () => {
    if (sums.size === 0) return
    const runningOut = new Set<string>()
    for (const part of inParts(sums)) {
      for (const counter of simulation.addHour(startOfHour(hour), part)) runningOut.add(counter)
      await pace()
    }
    if (runningOut.size > 0) await replayHour(context, { budget, simulation, find, hour, sums, runningOut, state })
    sums = new Map()
  }
  for await (const { totals } of readHours(context.reader, hourOf(since)))
    for (const total of totals) {
      await pace()
      if (startOfHour(total[0]) >= until) continue
      if (total[0] !== hour) await endHour()
      hour = total[0]
      const found = await counterOf(budget, find, requestOf(total))
      if (found === undefined) continue
      addTo(sums, found, amountsOf(total))
      withoutCost += total[8]
    }
  await endHour()
  return { simulation, withoutCost, isEstimated: state.isEstimated }
}

const countersAtOnce = 500

/** Each hour can have as many counters as a budget has. */
function* inParts(sums: ReadonlyMap<string, Amounts>): Generator<Map<string, Amounts>> {
  let part = new Map<string, Amounts>()
  for (const [counter, sum] of sums) {
    part.set(counter, sum)
    if (part.size < countersAtOnce) continue
    yield part
    part = new Map()
  }
  yield part
}

type HourInDetail = {
  budget: Budget
  simulation: Simulation
  find: FindKey
  hour: number
  sums: ReadonlyMap<string, Amounts>
  runningOut: ReadonlySet<string>
  state: { rowsRead: number; isEstimated: boolean }
}

async function replayHour(
  { reader }: ReplayContext,
  { budget, simulation, find, hour, sums, runningOut, state }: HourInDetail,
): Promise<void> {
  const [start, end] = [startOfHour(hour), startOfHour(hour + 1)]
  const seen = new Map<string, Amounts>()
  if (state.rowsRead < ledgerRowsMax)
    for await (const rows of readHourOfLedger(reader, budget.row.organizationId, { start, end })) {
      state.rowsRead += rows.length
      for (const row of rows) {
        const counter = await counterOf(budget, find, row)
        if (counter === undefined || !runningOut.has(counter)) continue
        const used = { requests: 1, tokens: row.tokens ?? 0, nanodollars: row.nanodollars ?? 0 }
        simulation.addRequest(counter, row.at, used)
        addTo(seen, counter, used)
      }
    }
  for (const counter of runningOut) {
    const rest = without(sums.get(counter) ?? nothing, seen.get(counter) ?? nothing)
    if (rest.requests <= 0) continue
    simulation.addEstimate(counter, start, rest)
    state.isEstimated = true
  }
}

type FindKey = (id: string) => Promise<KeyFacts | undefined>
type PastRequest = { keyId: string; policyId: string | null; attribution: string | null; model: string | null }

/** The keys that the budget applies to, also deleted ones. */
function createKeyFinder({ registry: { keys, deleted } }: Needs<'registry'>, budget: Budget): FindKey {
  const known = new Map<string, KeyFacts | undefined>()
  return async (id) => {
    if (known.has(id)) return known.get(id)
    const key = keys.get(id) ?? (await deleted.key(id))
    const found = key !== undefined && budget.appliesToKey(key) ? key : undefined
    known.set(id, found)
    return found
  }
}

async function counterOf(budget: Budget, find: FindKey, request: PastRequest): Promise<string | undefined> {
  const key = await find(request.keyId)
  return key !== undefined && budget.counts(request) ? budget.counterOf(key, { ...request, session: null }) : undefined
}

function requestOf([_hour, keyId, policyId, attribution, model]: HourTotals): PastRequest {
  return { keyId, policyId: policyId || null, attribution: attribution || null, model }
}

function amountsOf([, , , , , requests, tokens, nanodollars]: HourTotals): Amounts {
  return { requests, tokens, nanodollars }
}

const nothing: Amounts = { requests: 0, tokens: 0, nanodollars: 0 }

function addTo(sums: Map<string, Amounts>, counter: string, used: Amounts): void {
  const sum = sums.get(counter) ?? { ...nothing }
  sums.set(counter, sum)
  sum.requests += used.requests
  sum.tokens += used.tokens
  sum.nanodollars += used.nanodollars
}

function without(sum: Amounts, seen: Amounts): Amounts {
  return {
    requests: sum.requests - seen.requests,
    tokens: Math.max(0, sum.tokens - seen.tokens),
    nanodollars: Math.max(0, sum.nanodollars - seen.nanodollars),
  }
}
