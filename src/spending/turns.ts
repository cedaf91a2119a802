// Requests near the limit of a budget: each holds an estimate while it runs, and waits where those of others leave no room.
import { Fault } from '../fault.ts'
import type { Amounts, Budget, KeyFacts } from './budget.ts'
import { type BudgetRequest, type BudgetState, countersOf, isAbout, leftOf } from './budget-state.ts'
import type { Holds } from './holds.ts'
import { enlargeSlice, isFar, type SlicedPart, type Slices } from './slices.ts'

/**
 * `check` is called after a wait, and throws if the request may not begin any longer. `waitMilliseconds`: how long it waits at most, as for a
 * place at an inference server.
 */
export type WaitingRequest = {
  asking: BudgetRequest
  estimate: (rule: 'expected' | 'worst') => Amounts
  check: () => void
  signal: AbortSignal
  now: () => number
  waitMilliseconds: number
}

/** Where requests take turns: the budgets in force, what is held of them, and what other nodes hold. */
export type TurnContext = { state: () => BudgetState; holds: Holds; slices: Slices | undefined }

/** A request that is refused has waited. */
const retrySeconds = 1
/** For one counter. */
const waitingMax = 1_000
/** Other nodes do not wake those who wait here. */
const [askedFirstMilliseconds, askedMillisecondsMax] = [20, 320]
const nothingHeld = () => {}

/** Returns the release, at once if there is room. */
export function holdInTurn(
  context: TurnContext,
  key: KeyFacts,
  waiting: WaitingRequest,
): (() => void) | Promise<() => void> {
  const parts = partsOf(context, key, waiting)
  if (parts.length === 0) return nothingHeld
  const held = context.holds.take(parts, false)
  return typeof held === 'string' ? waitInTurn(context, key, waiting, held) : onceCounted(context, parts, held)
}

async function waitInTurn(
  context: TurnContext,
  key: KeyFacts,
  waiting: WaitingRequest,
  first: string,
): Promise<() => void> {
  const { state, holds, slices } = context
  if (waiting.waitMilliseconds === 0 || holds.sizeOf(first).waiting >= waitingMax)
    throw heldFault(state().budgets, first)
  const until = performance.now() + waiting.waitMilliseconds
  let [name, place, milliseconds] = [first, holds.queue(first), 0]
  const find = () => partsOf(context, key, waiting).find((part) => part.name === name && part.isSliced)
  try {
    for (;;) {
      // A slice that is too small is enlarged at once, and then again and again.
      const rest = until - performance.now()
      const asks = slices !== undefined && place.isFirst()
      if (!asks || milliseconds > 0) await place.turn(asks ? Math.min(milliseconds, rest) : rest, waiting.signal)
      let held = takeTurn(context, key, waiting)
      if (held === name && slices !== undefined && place.isFirst()) {
        milliseconds = Math.min(Math.max(askedFirstMilliseconds, 2 * milliseconds), askedMillisecondsMax)
        await enlargeSlice(state, { holds, slices, now: waiting.now }, find)
        held = takeTurn(context, key, waiting)
      }
      if (typeof held !== 'string') return held
      if (performance.now() >= until) throw heldFault(state().budgets, held)
      if (held === name) continue
      place.leave()
      ;[name, place, milliseconds] = [held, holds.queue(held), 0]
    }
  } finally {
    place.leave()
  }
}

/** The release, or the name of the counter that has no room. */
function takeTurn(context: TurnContext, key: KeyFacts, waiting: WaitingRequest): (() => void) | string {
  if (waiting.signal.aborted)
    throw new Fault('unavailable', 'The client left while the request waited', { reason: 'client_left' })
  waiting.check()
  const parts = partsOf(context, key, waiting)
  const held = context.holds.take(parts, true)
  return typeof held === 'string' ? held : onceCounted(context, parts, held)
}

function partsOf({ state, holds, slices }: TurnContext, key: KeyFacts, waiting: WaitingRequest): SlicedPart[] {
  const { asking, estimate, now } = waiting
  const parts: SlicedPart[] = []
  const estimates: Partial<Record<'expected' | 'worst', Amounts>> = {}
  const [current, at] = [state(), now()]
  if (slices?.isCurrent() === false) holds.dropReserves()
  for (const counter of countersOf(current, key, asking)) {
    const { budget, name } = counter
    const { mode, hold, windows } = budget.row
    if (windows.length === 0 || mode !== 'block' || hold === 'off' || !isAbout(budget, asking)) continue
    const own = estimates[hold] ?? estimate(hold)
    estimates[hold] = own
    const part: SlicedPart = { name, own, left: leftOf(current, counter, at), budget, counter: counter.value }
    if (slices !== undefined)
      part.isSliced = !isFar(current, part, [holds.heldOf(name), own], { nodes: slices.nodes(), now: at })
    parts.push(part)
  }
  return parts
}

/** Until the row of a request is counted here, its part stays held: otherwise it would be neither. */
function onceCounted({ slices }: TurnContext, parts: readonly SlicedPart[], release: () => void): () => void {
  if (slices === undefined || !parts.some(({ isSliced }) => isSliced)) return release
  return () => {
    // Without the database, nothing else is held either.
    slices.counted().then(release, release)
  }
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
