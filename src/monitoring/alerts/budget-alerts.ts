// Notices when a counter of a budget reaches a percent of what one of its windows allows. What is reached is found again at every start, so
// that a crash between the ledger's commit and that of the alert loses nothing.
import { createHash } from 'node:crypto'
import { createPace } from '../../../db/read/pace.ts'
import type { BudgetPeriod } from '../../../db/schema/budget-schema.ts'
import type { Budget } from '../../spending/budget.ts'
import type { RemainingAmount } from '../../spending/budget-state.ts'
import type { Budgets } from '../../spending/budgets.ts'
import type { Alerts } from './alerts.ts'

export type BudgetAlerts = {
  /** Looks at one counter. @param at a time of the period in question, in milliseconds */
  look: (budget: Budget, counter: string, at: number) => void
  /** Looks at all counters, while other work goes on. */
  lookAtAll: (at: number) => Promise<void>
  /** Waits until every look at all counters that has begun is over. */
  settle: () => Promise<void>
}

/** What is remembered only saves commits: the name of an alert makes it happen once. */
const rememberedMax = 50_000

export function createBudgetAlerts(
  budgets: Pick<Budgets, 'all' | 'sums' | 'shareOf' | 'spentOf'>,
  alerts: Alerts,
): BudgetAlerts {
  const raised = new Set<string>()
  let looking: Promise<unknown> = Promise.resolve()

  function look(budget: Budget, counter: string, at: number): void {
    const { alerts: percents, organizationId } = budget.row
    const [lowest] = percents
    if (lowest === undefined || budgets.shareOf(budget, counter, at) * 100 < lowest) return
    for (const [per, share, amount] of sharesOf(budgets.spentOf(budget, counter, at))) {
      if (share < lowest) continue
      const window = budget.windows.find((each) => each.per === per)
      const period = window?.periodAt(at)
      if (period === undefined) continue
      for (const percent of percents) {
        if (share < percent) continue
        const name = `budget ${budget.row.id} ${per} ${period.start} ${percent}`
        if (raised.has(`${name} ${counter}`)) continue
        if (raised.size >= rememberedMax) raised.clear()
        raised.add(`${name} ${counter}`)
        // The name stays when the value is erased: otherwise it would be saved again at the next start.
        const subject = `${name} ${createHash('sha256').update(counter).digest('base64url')}`
        const neededUntil = period.end === Infinity ? null : period.end
        alerts.raise([
          { organizationId, type: 'budget.reached', subject, neededUntil, data: dataOf(amount, percent, period.start) },
        ])
      }
    }
  }

  async function lookAtAll(at: number): Promise<void> {
    const pace = createPace()
    for (const budget of budgets.all())
      for (const counter of budgets.sums().countersOf(budget)) {
        look(budget, counter, at)
        await pace()
      }
  }

  return {
    look,
    lookAtAll: (at) => {
      const own = lookAtAll(at)
      looking = Promise.all([looking, own])
      return own
    },
    settle: async () => void (await looking),
  }
}

/** By window, the measure of which most is spent, in percent. Nothing is reached before something was spent. */
function sharesOf(spent: readonly RemainingAmount[]): [BudgetPeriod, share: number, RemainingAmount][] {
  const most = new Map<BudgetPeriod, [BudgetPeriod, number, RemainingAmount]>()
  for (const amount of spent) {
    const share = amount.spent === 0 ? 0 : (amount.spent / amount.limit) * 100
    if (share > (most.get(amount.per)?.[1] ?? 0)) most.set(amount.per, [amount.per, share, amount])
  }
  return [...most.values()]
}

function dataOf(
  { budget, counter, per, unit, limit, spent, resetsAt }: RemainingAmount,
  percent: number,
  start: number,
) {
  const { id, name, each, mode } = budget.row
  return {
    budget: { id, name, mode },
    ...(each === null ? {} : { each, value: counter }),
    ...{ per, percent, unit, limit, spent },
    period_start: new Date(start).toISOString(),
    resets_at: resetsAt === Infinity ? null : new Date(resetsAt).toISOString(),
  }
}
