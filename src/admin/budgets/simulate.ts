// The admin operation that shows what a budget, as it is or as it could be, would have refused of past usage.
import { createPace } from '../../../db/read/pace.ts'
import type { Budget as BudgetRow } from '../../../db/schema/budget-schema.ts'
import { addUsageSums } from '../../../db/write/usage-sums.ts'
import { Fault } from '../../fault.ts'
import { compileBudget } from '../../spending/budget.ts'
import { hourOf, startOfHour } from '../../spending/periods.ts'
import type { SimulatedCounter } from '../../spending/simulation.ts'
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
import { type ReplayContext, replay } from './replay.ts'
import { nameOfValue, resolveScope } from './resolve-scope.ts'

const dayMilliseconds = 24 * 60 * 60 * 1_000
const [daysDefault, daysMax, valuesShown] = [30, 92, 100]

const input = type({
  '+': 'reject',
  ...organizationInput,
  ...given(budgetFields, 'change'),
  'budget?': referenceShape.configure({ says: 'A saved budget; what is sent beside it replaces its fields' }),
  'since?': timeShape.configure({ says: `At most ${daysMax} days ago; ${daysDefault} days ago if it is not sent` }),
})

const time = type('string').configure({ format: 'date-time' })
/**
 * `refused` in `data`: by value, those with the most refusals first, then those that used most of a window. `requests_without_cost`: those
 * whose cost is unknown, of a budget with a window in dollars.
 */
export const simulationResponse = type({
  since: time,
  until: time,
  requests: 'number.integer',
  refused: 'number.integer',
  first_refused_at: time.or('null'),
  value_count: 'number.integer',
  values_refused: 'number.integer',
  estimated: 'boolean',
  'requests_without_cost?': 'number.integer',
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

type SimulateContext = ReplayContext & Needs<'orm' | 'now' | 'writer'>

async function simulate(context: SimulateContext, asked: typeof input.infer): Promise<typeof simulationResponse.infer> {
  const { registry, now, writer } = context
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
  // Totals by hour lack the newest requests.
  await writer.write(addUsageSums)
  const { simulation, withoutCost, isEstimated } = await replay(context, budget, first, until)
  const nameOf = (value: string) => nameOfValue(context, budget.row.each, value)
  return {
    ...(await summaryOf(simulation.counters(), nameOf)),
    since: timeOf(first),
    until: timeOf(until),
    estimated: isEstimated,
    ...(budget.limitsDollars ? { requests_without_cost: withoutCost } : {}),
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
