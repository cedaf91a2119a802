// Requests near the limit of a budget: each holds an estimate while it runs, and waits where those of others leave no room.
import { Fault } from '../fault.ts'
import type { Amounts, Budget, KeyFacts } from './budget.ts'
import { type BudgetRequest, type BudgetState, budgetsOf, isAbout, leftOf } from './budget-state.ts'
import type { HeldPart, Holds } from './holds.ts'

/** `check` is called after a wait, and throws if the request may not begin any longer. */
export type WaitingRequest = {
  asking: BudgetRequest
  estimate: (rule: 'expected' | 'worst') => Amounts
  check: () => void
  signal: AbortSignal
  now: () => number
  waitMilliseconds?: number
}

/** Requests wait so long for others that run. */
const holdMillisecondsMax = 30_000
const retrySeconds = 5
const nothingHeld = () => {}

/** Returns the release, at once if there is room. `state` returns what is in force now. */
export function holdInTurn(
  state: () => BudgetState,
  holds: Holds,
  key: KeyFacts,
  waiting: WaitingRequest,
): (() => void) | Promise<() => void> {
  const parts = partsOf(state(), key, waiting)
  if (parts.length === 0) return nothingHeld
  const held = holds.take(parts, false)
  return typeof held === 'string' ? waitInTurn(state, holds, key, waiting, held) : held
}

async function waitInTurn(
  state: () => BudgetState,
  holds: Holds,
  key: KeyFacts,
  waiting: WaitingRequest,
  first: string,
): Promise<() => void> {
  const until = performance.now() + (waiting.waitMilliseconds ?? holdMillisecondsMax)
  let place = holds.queue(first)
  try {
    for (;;) {
      await place.turn(until - performance.now(), waiting.signal)
      if (waiting.signal.aborted)
        throw new Fault('unavailable', 'The client left while the request waited', { reason: 'client_left' })
      waiting.check()
      const held = holds.take(partsOf(state(), key, waiting), true)
      if (typeof held !== 'string') return held
      if (performance.now() >= until) throw heldFault(state().budgets, held)
      if (held === place.name) continue
      place.leave()
      place = holds.queue(held)
    }
  } finally {
    place.leave()
  }
}

function partsOf(state: BudgetState, key: KeyFacts, { asking, estimate, now }: WaitingRequest): HeldPart[] {
  const parts: HeldPart[] = []
  const estimates: Partial<Record<'expected' | 'worst', Amounts>> = {}
  for (const budget of budgetsOf(state, key)) {
    const { mode, hold, id } = budget.row
    if (mode !== 'block' || hold === 'off' || !isAbout(budget, asking)) continue
    const counter = budget.counterOf(key, asking)
    const own = estimates[hold] ?? estimate(hold)
    estimates[hold] = own
    parts.push({ name: `${id} ${counter}`, own, left: leftOf(state, budget, counter, now()) })
  }
  return parts
}

function heldFault(budgets: readonly Budget[], held: string): Fault {
  const row = budgets.find((budget) => held.startsWith(`${budget.row.id} `))?.row
  const name = row?.name ?? ''
  return new Fault(
    'rate_limited',
    `The budget ${JSON.stringify(name)} is nearly spent, and running requests may use the rest; retry in ${retrySeconds} s`,
    {
      reason: 'budget_held',
      ...(row === undefined ? {} : { subject: { kind: 'budget' as const, id: row.id } }),
      headers: { 'retry-after': String(retrySeconds) },
      metadata: { budget: name },
    },
  )
}
