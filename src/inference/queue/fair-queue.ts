// Who runs now at which inference server, and who waits for one of several. Pure: it knows no time, no network and no request.
// server-queue.ts decides who is next at a server.

import {
  correct,
  createServerQueue,
  dequeue,
  enqueue,
  type ServerQueue,
  type Ticket,
  takeNext,
} from './server-queue.ts'

export type Bounds = { waitingMax: number; waitingPerCounterMax: number }

type Dependencies = {
  /** How many may run at a server at once; `Infinity` for any number. */
  limitOf: (server: string) => number
  /** How many requests of a key may run at once, wherever they run; `Infinity` for any number. */
  limitOfKey: (key: string) => number
  /** The same of a counter of a budget. */
  limitOfBudget: (counter: string) => number
  /** Selects one of the servers that have room for a ticket, at least one. */
  choose: (ticket: Ticket, servers: readonly string[]) => string
  /** Called when one that waited runs, before `leave`, `end` or `startAll` returns. It does not call the queue. */
  onStart: (ticket: Ticket, server: string) => void
}

type Count = { running: number; waiting: number }
type State = Dependencies & {
  bounds: Bounds
  /** Those that were ever used, which administrators make. */
  servers: Map<string, ServerQueue>
  keys: Map<string, Count>
  /** How many run of each counter of a budget that limits them. */
  budgets: Map<string, number>
  waitingByCounter: Map<string, number>
  running: Map<Ticket, string>
  waiting: Set<Ticket>
}

export type FairQueue = {
  /** The server at which it runs from now on; `waiting` until `onStart` is called with it; `full` if it may not wait. */
  arrive: (ticket: Ticket) => { server: string } | 'waiting' | 'full'
  /** One that waits may start at this server too, from the next `startAll` on. */
  widen: (ticket: Ticket, server: string) => void
  /** It no longer waits. */
  leave: (ticket: Ticket) => void
  /** It no longer runs. `cost` is what it was in the end, if that is known. */
  end: (ticket: Ticket, cost?: number) => void
  /** Starts what a raised limit lets start, at every server. */
  startAll: () => void
  at: (server: string) => Readonly<Count>
  ofKey: (key: string) => Readonly<Count>
  runningOfBudget: (counter: string) => number
  /** Of which requests run or wait. */
  keys: () => (Readonly<Count> & { id: string })[]
  waiting: () => number
}

const none: Count = { running: 0, waiting: 0 }

export function createFairQueue(bounds: Bounds, dependencies: Dependencies): FairQueue {
  const state: State = {
    ...dependencies,
    bounds,
    servers: new Map(),
    keys: new Map(),
    budgets: new Map(),
    waitingByCounter: new Map(),
    running: new Map(),
    waiting: new Set(),
  }
  return {
    arrive: (ticket) => arrive(state, ticket),
    leave: (ticket) => {
      if (!state.waiting.has(ticket)) return
      endWait(state, ticket)
      forgetIdle(state, ticket)
    },
    widen: (ticket, server) => {
      if (!state.waiting.has(ticket) || ticket.servers.includes(server)) return
      ticket.servers = [...ticket.servers, server]
      enqueue(serverOf(state, server), ticket)
    },
    end: (ticket, cost) => end(state, ticket, cost),
    startAll: () => startAll(state),
    at: (server) => state.servers.get(server) ?? none,
    ofKey: (key) => state.keys.get(key) ?? none,
    runningOfBudget: (counter) => state.budgets.get(counter) ?? 0,
    keys: () => [...state.keys].map(([id, { running, waiting }]) => ({ id, running, waiting })),
    waiting: () => state.waiting.size,
  }
}

function arrive(state: State, ticket: Ticket): ReturnType<FairQueue['arrive']> {
  const free = isHeld(state, ticket) ? [] : withRoom(state, ticket.servers)
  if (free.length > 0) {
    const server = state.choose(ticket, free)
    start(state, ticket, server)
    return { server }
  }
  const { waitingMax, waitingPerCounterMax } = state.bounds
  const ofCounter = state.waitingByCounter.get(ticket.counter) ?? 0
  const isFull = state.waiting.size >= waitingMax || ofCounter >= waitingPerCounterMax
  // One that has had its turn is one of few.
  if (isFull && !ticket.isRetry) return 'full'
  state.waiting.add(ticket)
  state.waitingByCounter.set(ticket.counter, ofCounter + 1)
  keyOf(state, ticket).waiting += 1
  for (const server of ticket.servers) enqueue(serverOf(state, server), ticket)
  return 'waiting'
}

function end(state: State, ticket: Ticket, cost: number | undefined): void {
  const server = state.running.get(ticket)
  if (server === undefined) return
  state.running.delete(ticket)
  const at = serverOf(state, server)
  at.running -= 1
  if (cost !== undefined) correct(at, ticket, cost)
  keyOf(state, ticket).running -= 1
  countBudgets(state, ticket, -1)
  if (state.waiting.size > 0) startAll(state)
  forgetIdle(state, ticket)
}

function startAll(state: State): void {
  for (const [id, server] of state.servers) {
    while (server.waiting > 0 && hasRoom(state, id)) {
      const next = takeNext(server, (ticket) => isHeld(state, ticket))
      if (next === undefined) break
      endWait(state, next)
      start(state, next, id)
      state.onStart(next, id)
    }
  }
}

function start(state: State, ticket: Ticket, server: string): void {
  serverOf(state, server).running += 1
  keyOf(state, ticket).running += 1
  countBudgets(state, ticket, 1)
  state.running.set(ticket, server)
}

function endWait(state: State, ticket: Ticket): void {
  state.waiting.delete(ticket)
  keyOf(state, ticket).waiting -= 1
  const left = (state.waitingByCounter.get(ticket.counter) ?? 0) - 1
  if (left > 0) state.waitingByCounter.set(ticket.counter, left)
  else state.waitingByCounter.delete(ticket.counter)
  for (const server of ticket.servers) dequeue(serverOf(state, server), ticket)
}

/** Most servers have no limit, so that all of them have room. */
function withRoom(state: State, servers: readonly string[]): readonly string[] {
  const [first] = servers
  if (servers.length === 1 && first !== undefined) return hasRoom(state, first) ? servers : []
  return servers.filter((server) => hasRoom(state, server))
}

function hasRoom({ servers, limitOf }: State, server: string): boolean {
  return (servers.get(server)?.running ?? 0) < limitOf(server)
}

function isHeld({ keys, budgets, limitOfKey, limitOfBudget }: State, ticket: Ticket): boolean {
  if ((keys.get(ticket.key)?.running ?? 0) >= limitOfKey(ticket.key)) return true
  for (const counter of ticket.budgets) if ((budgets.get(counter) ?? 0) >= limitOfBudget(counter)) return true
  return false
}

function countBudgets({ budgets }: State, ticket: Ticket, change: 1 | -1): void {
  for (const counter of ticket.budgets) {
    const running = (budgets.get(counter) ?? 0) + change
    if (running === 0) budgets.delete(counter)
    else budgets.set(counter, running)
  }
}

function forgetIdle({ keys }: State, { key }: Ticket): void {
  const count = keys.get(key)
  if (count?.running === 0 && count.waiting === 0) keys.delete(key)
}

function keyOf({ keys }: State, { key }: Ticket): Count {
  const known = keys.get(key)
  if (known !== undefined) return known
  const count = { running: 0, waiting: 0 }
  keys.set(key, count)
  return count
}

function serverOf({ servers }: State, id: string): ServerQueue {
  const known = servers.get(id)
  if (known !== undefined) return known
  const server = createServerQueue()
  servers.set(id, server)
  return server
}
