// How several nodes share what is left of a budget near its limit. Far from it, each node holds for its own requests. Near it, a node takes
// a slice: the slices of all nodes and what the ledger has never exceed the limit, except for one request that runs alone.
import type { SliceAmounts, SlicedCounter, SliceRequest } from '../../db/tables/budget-slices.ts'
import type { Amounts, Budget } from './budget.ts'
import { type BudgetState, isSpent } from './budget-state.ts'
import type { HeldPart, Holds } from './holds.ts'

/** What nodes know of one another. */
export type Slices = {
  /** How many nodes serve, at least one. */
  nodes: () => number
  /** Whether other nodes still count the slices of this one: they do for five seconds after a report. */
  isCurrent: () => boolean
  /** Asks for a larger slice. Returns the slice of this node and those of others; undefined if others do not count this node. */
  take: (
    counter: SlicedCounter,
    asked: SliceRequest,
  ) => Promise<{ own: SliceAmounts; others: SliceAmounts } | undefined>
  /** Resolves when every row that was committed before the call is counted. */
  counted: () => Promise<void>
}

export type SlicedPart = HeldPart & { budget: Budget; counter: string }

/** Below this part of the limit, nodes need no slices. */
const farShare = 0.8
/** A slice is for some requests, where its limit allows it. */
const sliceShare = 0.01
/** No amount is larger. The sum of those of all nodes must be a safe integer. */
const amountMax = 2 ** 50
const units = ['nanodollars', 'tokens', 'requests'] as const

/**
 * Reports whether a counter is so far from its limit that all nodes together stay below it, if each holds as much as this one. What one node
 * holds then is at most its part of the rest, and it says so with its next report.
 */
export function isFar(
  { sums }: BudgetState,
  { budget, counter }: { budget: Budget; counter: string },
  [held, own]: [Readonly<Amounts>, Readonly<Amounts>],
  { nodes, now }: { nodes: number; now: number },
): boolean {
  return budget.windows.every((_, index) => {
    const limit = budget.limitOf(counter, index, now)
    const used = sums.usedOf(budget, counter, index, now)
    return units.every((unit) => {
      if (limit[unit] === Infinity) return true
      const all = nodes * (held[unit] + own[unit])
      return used[unit] + all <= limit[unit] * farShare && all <= limit[unit] * (1 - farShare)
    })
  })
}

/**
 * Takes a slice with room for one more request, if there is any. `find` returns the part as it is now: budgets can change meanwhile.
 * @throws the error of the database
 */
export async function enlargeSlice(
  state: () => BudgetState,
  { holds, slices, now }: { holds: Holds; slices: Slices; now: () => number },
  find: () => SlicedPart | undefined,
): Promise<void> {
  const part = find()
  if (part === undefined) return
  const { name, budget, counter } = part
  const held = holds.beginSlice(name)
  const reserve = { nanodollars: 0, tokens: 0, requests: 0 }
  try {
    const asked = requestFor(part, roomFor(state(), part, slices.nodes(), now()), held, limitOf(budget, counter, now()))
    const seen = await slices.take({ budgetId: budget.row.id, counter }, asked)
    // The slices of others were read before: what they used until then is counted now.
    await slices.counted()
    const after = find()
    if (seen === undefined || after === undefined) return
    const room = roomFor(state(), after, slices.nodes(), now())
    Object.assign(reserve, reserveOf(after, room, asked.held, seen, holds.heldOf(name)))
  } finally {
    holds.endSlice(name, reserve)
  }
}

function requestFor({ own }: SlicedPart, left: Amounts, held: Amounts, limit: Amounts): SliceRequest {
  const request = { held: zero(), own: zero(), wanted: zero(), left: zero() }
  for (const unit of units) {
    request.left[unit] = bounded(Math.floor(left[unit]))
    // Requests count in any case: by them, nodes know whether one runs alone.
    if (left[unit] === Infinity && unit !== 'requests') continue
    request.held[unit] = bounded(Math.ceil(held[unit]))
    request.own[unit] = bounded(Math.ceil(own[unit]))
    request.wanted[unit] = bounded(
      Math.ceil(held[unit] + Math.max(own[unit], left[unit] === Infinity ? 0 : limit[unit] * sliceShare)),
    )
  }
  return request
}

/**
 * What is left for the slices of all nodes: of each measure, in the window that has the least. While other nodes can be far from the limit, what
 * these hold without a slice is kept free.
 */
function roomFor({ sums }: BudgetState, { budget, counter }: SlicedPart, nodes: number, now: number): Amounts {
  const room = { nanodollars: Infinity, tokens: Infinity, requests: Infinity }
  for (let index = 0; index < budget.windows.length; index++) {
    const limit = budget.limitOf(counter, index, now)
    const used = sums.usedOf(budget, counter, index, now)
    const isFarPossible =
      nodes <= limit.requests * (1 - farShare) && units.every((unit) => used[unit] <= limit[unit] * farShare)
    for (const unit of units) {
      if (limit[unit] === Infinity) continue
      const kept = isFarPossible ? (limit[unit] * (1 - farShare) * (nodes - 1)) / nodes : 0
      room[unit] = Math.min(room[unit], limit[unit] - used[unit] - kept)
    }
  }
  return room
}

/** What the slice has beyond what is held, as far as the ledger leaves it. */
function reserveOf(
  { own, left }: SlicedPart,
  room: Amounts,
  heldBefore: SliceAmounts,
  { own: slice, others }: { own: SliceAmounts; others: SliceAmounts },
  held: Readonly<Amounts>,
): Amounts {
  const reserve = zero()
  for (const unit of units)
    if (left[unit] !== Infinity)
      reserve[unit] = Math.min(slice[unit] - heldBefore[unit], room[unit] - others[unit] - held[unit])
  if (units.every((unit) => left[unit] === Infinity || own[unit] <= reserve[unit])) return reserve
  const isAlone = others.requests === 0 && held.requests === 0 && slice.requests > 0
  return isAlone && !isSpent(left) ? own : zero()
}

/** The slices that other nodes must know of. */
export function slicesOf(
  state: BudgetState,
  holds: Holds,
  { nodes }: Slices,
  now: number,
): (SlicedCounter & SliceAmounts)[] {
  const budgets = new Map(state.budgets.map((budget) => [budget.row.id, budget]))
  const isNear = (name: string, held: Amounts) => {
    const { budgetId, counter } = counterNamed(name)
    const budget = budgets.get(budgetId)
    if (budget === undefined || budget.row.mode !== 'block' || budget.row.hold === 'off') return false
    return !isFar(state, { budget, counter }, [held, zero()], { nodes: nodes(), now })
  }
  return holds.listSlices(isNear).map(({ name, slice }) => ({
    ...counterNamed(name),
    requests: bounded(Math.ceil(slice.requests)),
    tokens: bounded(Math.ceil(slice.tokens)),
    nanodollars: bounded(Math.ceil(slice.nanodollars)),
  }))
}

/** A counter as it is named among holds: ids have no blanks. */
export const counterName = (budgetId: string, counter: string) => `${budgetId} ${counter}`

function counterNamed(name: string): SlicedCounter {
  const end = name.indexOf(' ')
  return { budgetId: name.slice(0, end), counter: name.slice(end + 1) }
}

/** The lowest limit of each measure. */
function limitOf(budget: Budget, counter: string, now: number): Amounts {
  const limits = budget.windows.map((_, index) => budget.limitOf(counter, index, now))
  const lowest = zero()
  for (const unit of units) lowest[unit] = Math.min(...limits.map((limit) => limit[unit]))
  return lowest
}

const zero = (): Amounts => ({ nanodollars: 0, tokens: 0, requests: 0 })
const bounded = (amount: number) => Math.max(-amountMax, Math.min(amount, amountMax))
