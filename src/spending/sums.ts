// What was used of each budget, in memory: one sum for each counter and period. The ledger's totals are the truth; these sums
// are built from them, and grow with every row that is committed. A hundred thousand counters take about 20 MB with one window.
import type { Amounts, Budget, KeyFacts, RequestFacts } from './budget.ts'

/** What was used. `requestsWithoutCost`: those of the requests whose cost is unknown, so that it is not among the nanodollars. */
export type UsedAmounts = Amounts & { requestsWithoutCost: number }
/** What requests used at a time, in milliseconds. */
export type UsageAmounts = RequestFacts & { model: string | null; at: number; amounts: UsedAmounts }

export type BudgetSums = {
  /** Adds what was used at a time (milliseconds) to those of the budgets of the key that it belongs to. */
  add: (ofKey: readonly Budget[], key: KeyFacts, used: UsageAmounts) => void
  /** What a counter used in the period of a window that has this time. */
  usedOf: (budget: Budget, counter: string, window: number, at: number) => Readonly<UsedAmounts>
  /** Where a counter is; negative until it is known. It never moves. */
  placeOf: (budget: Budget, counter: string) => number
  /** As `usedOf`, of the counter at a place, written over these amounts: it is called several times for each request. */
  read: (budget: Budget, place: number, window: number, at: number, into: UsedAmounts) => void
  /** When the first period begins that a clock set ahead has reached and that was dropped since; infinite without one. */
  droppedLater: () => number
  /** The counters of a budget. */
  countersOf: (budget: Budget) => Iterable<string>
  /** Reports whether a counter is known, or can be added. */
  hasRoomFor: (budget: Budget, counter: string) => boolean
}

/** Requests that began before the end of a period end after it, and clocks are set back. */
const periodsKept = 3
/** The start of the period, nanodollars, tokens, requests, and those without a known cost. Zeros are a sum of nothing. */
const numbersOfPeriod = 5
const numbersOfWindow = periodsKept * numbersOfPeriod
/** Counters are added in pieces, so that none are ever copied. */
const countersInPiece = 64
/** More than one budget needs. */
const countersMaxByDefault = 100_000

/** The place of each counter, and the numbers of all windows of each place. */
type Table = { places: Map<string, number>; pieces: Float64Array[]; numbers: number; inPiece: number }

const unknownPlace = -1
const nothing: Readonly<UsedAmounts> = Object.freeze({ nanodollars: 0, tokens: 0, requests: 0, requestsWithoutCost: 0 })

/**
 * `budgets`: those that are in force. `now`: in milliseconds; where a counter has had too many periods, the one that is furthest from now
 * is dropped.
 */
export function createBudgetSums(
  budgets: readonly Budget[],
  now: () => number,
  countersMax = countersMaxByDefault,
): BudgetSums {
  const tables = new Map(budgets.map((budget) => [budget, createTable(budget)]))
  let later = Number.POSITIVE_INFINITY
  const onDropped = (start: number, current: number) => {
    if (start > current) later = Math.min(later, start)
  }
  return {
    add: (ofKey, key, used) => {
      for (const budget of ofKey) {
        if (!budget.counts(used)) continue
        const table = tables.get(budget)
        if (table !== undefined && budget.windows.length > 0)
          addTo(table, budget, budget.counterOf(key, used), used, { now, onDropped })
      }
    },
    usedOf: (budget, counter, index, at) => {
      const used = { ...nothing }
      read(tables.get(budget), budget, tables.get(budget)?.places.get(counter) ?? unknownPlace, index, at, used)
      return used
    },
    placeOf: (budget, counter) => tables.get(budget)?.places.get(counter) ?? unknownPlace,
    read: (budget, place, index, at, into) => read(tables.get(budget), budget, place, index, at, into),
    droppedLater: () => later,
    countersOf: (budget) => tables.get(budget)?.places.keys() ?? [],
    hasRoomFor: (budget, counter) => {
      const places = tables.get(budget)?.places
      return places === undefined || places.size < countersMax || places.has(counter)
    },
  }
}

function read(
  table: Table | undefined,
  { windows }: Budget,
  place: number,
  index: number,
  at: number,
  into: UsedAmounts,
): void {
  const window = windows[index]
  into.nanodollars = 0
  into.tokens = 0
  into.requests = 0
  into.requestsWithoutCost = 0
  if (table === undefined || place === unknownPlace || window === undefined) return
  const piece = pieceOf(table, place)
  const found = findPeriod(piece, offsetOf(table, place, index), window.periodAt(at).start)
  if (found < 0) return
  into.nanodollars = piece[found + 1] ?? 0
  into.tokens = piece[found + 2] ?? 0
  into.requests = piece[found + 3] ?? 0
  into.requestsWithoutCost = piece[found + 4] ?? 0
}

function createTable({ windows, row: { each } }: Budget): Table {
  const inPiece = each === null ? 1 : countersInPiece
  return { places: new Map(), pieces: [], numbers: windows.length * numbersOfWindow, inPiece }
}

const noPiece = new Float64Array(0)

function pieceOf({ pieces, inPiece }: Table, place: number): Float64Array {
  return pieces[Math.floor(place / inPiece)] ?? noPiece
}

function offsetOf({ inPiece, numbers }: Table, place: number, window: number): number {
  return (place % inPiece) * numbers + window * numbersOfWindow
}

/** The index of the sum of a period, or a negative number. */
function findPeriod(piece: Float64Array, offset: number, start: number): number {
  for (let at = offset; at < offset + numbersOfWindow; at += numbersOfPeriod) if (piece[at] === start) return at
  return -1
}

type DropNotice = (start: number, current: number) => void

function addTo(
  table: Table,
  { windows }: Budget,
  counter: string,
  used: UsageAmounts,
  { now, onDropped }: { now: () => number; onDropped: DropNotice },
): void {
  const { places, pieces, inPiece, numbers } = table
  let place = places.get(counter)
  if (place === undefined) {
    place = places.size
    places.set(counter, place)
    if (place % inPiece === 0) pieces.push(new Float64Array(inPiece * numbers))
  }
  const { at, amounts } = used
  const piece = pieceOf(table, place)
  for (let index = 0; index < windows.length; index++) {
    const window = windows[index]
    if (window === undefined) continue
    const { start } = window.periodAt(at)
    const offset = offsetOf(table, place, index)
    const found = findPeriod(piece, offset, start)
    const sum = found >= 0 ? found : begin(piece, offset, start, window.periodAt(now()).start, onDropped)
    if (sum < 0) continue
    piece[sum + 1] = (piece[sum + 1] ?? 0) + amounts.nanodollars
    piece[sum + 2] = (piece[sum + 2] ?? 0) + amounts.tokens
    piece[sum + 3] = (piece[sum + 3] ?? 0) + amounts.requests
    if (amounts.requestsWithoutCost > 0) piece[sum + 4] = (piece[sum + 4] ?? 0) + amounts.requestsWithoutCost
  }
}

/** Replaces the sum of the period that is furthest from the current one. A negative number if that is this one. */
function begin(piece: Float64Array, offset: number, start: number, current: number, onDropped: DropNotice): number {
  let furthest = offset
  for (let at = offset; at < offset + numbersOfWindow; at += numbersOfPeriod)
    if (Math.abs((piece[at] ?? 0) - current) > Math.abs((piece[furthest] ?? 0) - current)) furthest = at
  const isKept = Math.abs((piece[furthest] ?? 0) - current) < Math.abs(start - current)
  onDropped(isKept ? start : (piece[furthest] ?? 0), current)
  if (isKept) return -1
  piece.fill(0, furthest, furthest + numbersOfPeriod)
  piece[furthest] = start
  return furthest
}
