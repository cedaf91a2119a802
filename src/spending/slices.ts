// How several nodes share what is left of a budget near its limit. Far from it, each node holds for its own requests. Near it, a node takes
// a slice: the slices of all nodes and what the ledger has never exceed the limit, except for one request that runs alone.
import type { SliceAmounts, SlicedCounter, SliceRequest } from '../../db/tables/budget-slices.ts'
import type { Amounts, Budget } from './budget.ts'
import { type BudgetState, counterNamed, isSpent } from './budget-state.ts'
import type { HeldPart, Holds } from './holds.ts'
import type { UsedBefore } from './used-before.ts'

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
  /** What was used when every node has reported since. */
  usedBefore: UsedBefore
}

export type SlicedPart = HeldPart & { budget: Budget; counter: string }

/** Below this part of the limit, nodes need no slices: all of them together hold at most the rest. */
const farShare = 0.8
/** A limit of fewer requests has no far: its rest would be less than a request for each of many nodes. */
const requestsFarMin = 100
/** A slice is for some requests, where its limit allows it. */
const sliceShare = 0.01
/** No amount is larger. The sum of those of all nodes must be a safe integer. */
const amountMax = 2 ** 50
const units = ['nanodollars', 'tokens', 'requests'] as const

const hasFar = ({ requestsMin }: Budget) => requestsMin >= requestsFarMin

/** What all nodes together may hold without slices, after this was used. */
const heldFarMax = (limit: number, used: number) =>
  Math.max(0, Math.min(limit * farShare - used, limit * (1 - farShare)))

/**
 * Reports whether a counter is so far from its limit that all nodes together stay below it, if each holds as much as this one; one more may be
 * starting. What a node holds that is not far any longer is in its next report.
 */
export function isFar(
  { sums }: BudgetState,
  { budget, counter }: { budget: Budget; counter: string },
  [held, own]: [Readonly<Amounts>, Readonly<Amounts>],
  { nodes, now }: { nodes: number; now: number },
): boolean {
  if (!hasFar(budget)) return false
  return budget.windows.every((_, index) => {
    const limit = budget.limitOf(counter, index, now)
    const used = sums.usedOf(budget, counter, index, now)
    return units.every(
      (unit) =>
        limit[unit] === Infinity || (nodes + 1) * (held[unit] + own[unit]) <= heldFarMax(limit[unit], used[unit]),
    )
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
    const room = roomFor(state(), part, slices, now())
    // Others may hold all that is left, and say so with their next reports.
    if (isSpent(room)) return await slices.counted()
    const asked = requestFor(part, room, held, limitOf(budget, counter, now()))
    const seen = await slices.take({ budgetId: budget.row.id, counter }, asked)
    // The slices of others were read before: what they used until then is counted now.
    await slices.counted()
    const after = find()
    if (seen === undefined || after === undefined) return
    Object.assign(
      reserve,
      reserveOf(after, roomFor(state(), after, slices, now()), asked.held, seen, holds.heldOf(name)),
    )
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
 * What is left for the slices of all nodes: of each measure, in the window that has the least. What others may hold without a slice, and have
 * not reported, is kept free.
 */
function roomFor({ sums }: BudgetState, { name, budget, counter }: SlicedPart, slices: Slices, now: number): Amounts {
  const room = { nanodollars: Infinity, tokens: Infinity, requests: Infinity }
  const used = budget.windows.map((_, index) => sums.usedOf(budget, counter, index, now))
  const before = hasFar(budget) ? slices.usedBefore(name, used) : used
  for (const [index, of] of used.entries()) {
    const limit = budget.limitOf(counter, index, now)
    for (const unit of units) {
      if (limit[unit] === Infinity) continue
      const kept = hasFar(budget) ? heldFarMax(limit[unit], before[index]?.[unit] ?? 0) : 0
      room[unit] = Math.min(room[unit], limit[unit] - of[unit] - kept)
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
  return isAlone && !isSpent(room) ? own : zero()
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

/** The lowest limit of each measure. */
function limitOf(budget: Budget, counter: string, now: number): Amounts {
  const limits = budget.windows.map((_, index) => budget.limitOf(counter, index, now))
  const lowest = zero()
  for (const unit of units) lowest[unit] = Math.min(...limits.map((limit) => limit[unit]))
  return lowest
}

const zero = (): Amounts => ({ nanodollars: 0, tokens: 0, requests: 0 })
const bounded = (amount: number) => Math.max(-amountMax, Math.min(amount, amountMax))
