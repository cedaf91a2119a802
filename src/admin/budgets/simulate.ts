// The admin operation that shows what a budget, as it is or as it could be, would have refused of past usage.
import { createPace } from '../../../db/read/pace.ts'
import { readHourOfLedger } from '../../../db/read/simulation-rows.ts'
import type { Budget as BudgetRow } from '../../../db/schema/budget-schema.ts'
import { type HourTotals, readHours } from '../../../db/tables/budgets.ts'
import { Fault } from '../../fault.ts'
import { type Amounts, type Budget, compileBudget, type KeyFacts } from '../../spending/budget.ts'
import { hourOf, startOfHour } from '../../spending/periods.ts'
import { createSimulation, type SimulatedCounter, type Simulation } from '../../spending/simulation.ts'
import { createLargest } from '../../values/largest.ts'
import { type } from '../../values/shape.ts'
import { referenceShape, timeShape } from '../../values/shapes.ts'
import { budgetFields } from '../kinds/budget.ts'
import { columnsOf, given } from '../kinds/fields.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { findOrganization, findRow, organizationInput, timeOf } from '../operation/references.ts'
import { namedValue } from './budget-response.ts'
import { draftBudget } from './budgets.ts'
import { nameOfValue, resolveScope } from './resolve-scope.ts'

const dayMilliseconds = 24 * 60 * 60 * 1_000
const [daysDefault, daysMax, valuesShown, ledgerRowsMax] = [30, 92, 100, 1_000_000]

const input = type({
  '+': 'reject',
  ...organizationInput,
  ...given(budgetFields, 'change'),
  'budget?': referenceShape.configure({ says: 'A saved budget; what is sent beside it replaces its fields' }),
  'since?': timeShape.configure({ says: `At most ${daysMax} days ago; ${daysDefault} days ago if it is not sent` }),
})

const time = type('string').configure({ format: 'date-time' })
/** `refused` in `data`: by value, those with the most refusals first, then those that used most of a window. */
export const simulationResponse = type({
  since: time,
  until: time,
  requests: 'number.integer',
  refused: 'number.integer',
  first_refused_at: time.or('null'),
  value_count: 'number.integer',
  values_refused: 'number.integer',
  estimated: 'boolean',
  data: type({
    value: 'string',
    'name?': 'string',
    requests: 'number.integer',
    refused: 'number.integer',
    first_refused_at: time.or('null'),
    share: 'number',
  }).array(),
}).configure({ title: 'BudgetSimulation' })

export const simulationOperations = { 'budgets.simulate': operation(input, simulate) }

type SimulateContext = Needs<'orm' | 'reader' | 'registry' | 'now'>

async function simulate(context: SimulateContext, asked: typeof input.infer): Promise<typeof simulationResponse.infer> {
  const { registry, now } = context
  const { id: organizationId } = findOrganization(registry, asked.organization)
  const budget = compileBudget(
    await rowOf(context, asked, organizationId),
    registry.organizations.get(organizationId)?.timeZone ?? null,
  )
  if (budget.row.each === 'session')
    throw new Fault('invalid', 'A budget for each session cannot be simulated: choose another each')
  const until = now()
  const since = asked.since?.getTime() ?? until - daysDefault * dayMilliseconds
  if (since >= until || until - since > daysMax * dayMilliseconds)
    throw new Fault('invalid', `since must be in the past, at most ${daysMax} days ago`)
  const first = startOfHour(hourOf(since))
  const { simulation, isEstimated } = await replay(context, budget, first, until)
  const nameOf = (value: string) => nameOfValue(context, budget.row.each, value)
  return {
    ...(await summaryOf(simulation.counters(), nameOf)),
    since: timeOf(first),
    until: timeOf(until),
    estimated: isEstimated,
  }
}

/** Top-ups are left out: they were made for their time. */
async function rowOf(
  context: Needs<'orm' | 'registry' | 'now'>,
  { budget: reference, organization: _organization, since: _since, applies_to, ...fields }: typeof input.infer,
  organizationId: string,
): Promise<BudgetRow> {
  const { registry, now } = context
  const scope = applies_to === undefined ? {} : { appliesTo: await resolveScope(context, organizationId, applies_to) }
  if (reference !== undefined) {
    const saved = findRow(registry, 'budget', registry.budgets, reference, organizationId)
    return { ...saved, ...columnsOf<BudgetRow>(budgetFields, fields), ...scope, topUps: null }
  }
  const { windows } = fields
  if (windows === undefined) throw new Fault('invalid', 'Add windows, or name a saved budget')
  return { ...draftBudget({ name: '', ...fields, windows }, organizationId, scope.appliesTo ?? null, now()) }
}

/** Only hours in which a counter runs out are read request by request, and of those at most `ledgerRowsMax` requests. */
async function replay(context: SimulateContext, budget: Budget, since: number, until: number) {
  const simulation = createSimulation(budget)
  const find = createKeyFinder(context, budget)
  const state = { rowsRead: 0, isEstimated: false }
  const pace = createPace()
  let hour = -1
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
      if (found !== undefined) addTo(sums, found, amountsOf(total))
    }
  await endHour()
  return { simulation, isEstimated: state.isEstimated }
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
  { reader }: SimulateContext,
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

async function summaryOf(counters: readonly SimulatedCounter[], nameOf: (value: string) => string | undefined) {
  const worst = createLargest<SimulatedCounter>(
    valuesShown,
    (one, other) => other.refused - one.refused || other.share - one.share || (one.counter < other.counter ? -1 : 1),
  )
  const sum = { requests: 0, refused: 0, values_refused: 0 }
  let first = Infinity
  const pace = createPace()
  for (const each of counters) {
    worst.add(each)
    sum.requests += each.requests
    sum.refused += each.refused
    if (each.refused > 0) sum.values_refused += 1
    first = Math.min(first, each.firstRefusedAt ?? Infinity)
    await pace()
  }
  return {
    ...sum,
    first_refused_at: timeOf(first === Infinity ? null : first),
    value_count: counters.length,
    data: worst.values().map(({ counter, requests, refused, firstRefusedAt, share }) => ({
      ...namedValue(counter, nameOf(counter)),
      ...{ requests, refused, first_refused_at: timeOf(firstRefusedAt) },
      share: Math.min(share, Number.MAX_SAFE_INTEGER),
    })),
  }
}
