// What waits at one inference server, and what starts there next: start-time fair queueing by counter (Goyal, Vin and Cheng, SIGCOMM 1996)
// in three classes. Pure: it knows no time, no network and no other server.

import { queueClasses } from '../../../db/schema/value-names.ts'

export type QueueClass = (typeof queueClasses)[number]

/** A lower class starts while no higher one waits, and else once in twenty starts. */
const passedOverMax = 19

/** What a request asks for. Tickets are compared by identity; each arrives once, and leaves or ends once. */
export type Ticket = {
  /** Ids of the servers that can serve it: it starts at one of them. More can come while it waits. */
  servers: readonly string[]
  /** Whose turn it is: counters with the same weight get the same share of a busy server. */
  readonly counter: string
  readonly weight: number
  readonly class: QueueClass
  /** The work that it is expected to be, in any unit, such as tokens. */
  readonly cost: number
  readonly key: string
  /** Counters of budgets that limit how many run at once, in addition to the key. */
  readonly budgets: readonly string[]
  /** It has had its turn at a server that failed, so it starts before all others and costs nothing. */
  readonly isRetry: boolean
}

/**
 * The requests of a counter that wait, oldest first. `start` is the virtual time at which the next one starts. `ratio`: what its requests
 * took lately, beside what was expected of them. Without it, who runs at the moment would look far dearer than they are, and two counters
 * with short responses would take turns at two places whatever their weights.
 */
type Flow = { start: number; weight: number; class: QueueClass; ratio: number; readonly tickets: Set<Ticket> }
/** What a ticket was charged when it started, and where its flow stood after it. */
type Charge = { amount: number; finish: number }

/** A server is busy from the moment when a request waits for it until none does. `virtualTime`, `flows` and `charges` last as long. */
export type ServerQueue = {
  running: number
  waiting: number
  virtualTime: number
  /** Of counters that wait or have a debt: callers choose the names of some, so others are forgotten. */
  readonly flows: Map<string, Flow>
  charges: WeakMap<Ticket, Charge>
  readonly retries: Set<Ticket>
  readonly passedOver: Record<QueueClass, number>
}

export function createServerQueue(): ServerQueue {
  const passedOver = { interactive: 0, normal: 0, batch: 0 }
  const charges = new WeakMap<Ticket, Charge>()
  return { running: 0, waiting: 0, virtualTime: 0, flows: new Map(), charges, retries: new Set(), passedOver }
}

/** A counter that begins to wait has no credit from before. An edited weight or class applies to all its requests that wait. */
export function enqueue(server: ServerQueue, ticket: Ticket): void {
  server.waiting += 1
  if (ticket.isRetry) return void server.retries.add(ticket)
  const flow = flowOf(server, ticket, server.virtualTime)
  flow.weight = ticket.weight
  flow.class = ticket.class
  flow.start = Math.max(flow.start, flow.tickets.size === 0 ? server.virtualTime : 0)
  flow.tickets.add(ticket)
}

export function dequeue(server: ServerQueue, ticket: Ticket): void {
  const isRemoved = server.retries.delete(ticket) || server.flows.get(ticket.counter)?.tickets.delete(ticket) === true
  if (isRemoved) server.waiting -= 1
  if (server.waiting > 0) return
  server.flows.clear()
  server.charges = new WeakMap()
  server.virtualTime = 0
  for (const each of queueClasses) server.passedOver[each] = 0
}

/** Selects what starts next, and advances the virtual time. Undefined if nothing waits that is not held. */
export function takeNext(server: ServerQueue, isHeld: (ticket: Ticket) => boolean): Ticket | undefined {
  for (const ticket of server.retries) if (!isHeld(ticket)) return ticket
  const firsts = firstOfEachClass(server, isHeld)
  const ready = queueClasses.filter((each) => firsts[each] !== undefined)
  const chosen = ready.findLast((each) => server.passedOver[each] >= passedOverMax) ?? ready[0]
  const first = chosen && firsts[chosen]
  if (first === undefined) return undefined
  for (const each of ready) server.passedOver[each] = each === chosen ? 0 : server.passedOver[each] + 1
  const { flow, ticket } = first
  server.virtualTime = Math.max(server.virtualTime, flow.start)
  const amount = Math.max(1, ticket.cost * flow.ratio)
  flow.start += amount / flow.weight
  server.charges.set(ticket, { amount, finish: flow.start })
  return ticket
}

/** A counter whose request was more work than expected starts later next time, and earlier after less. What started at once was free. */
export function correct(server: ServerQueue, ticket: Ticket, cost: number): void {
  const charge = server.charges.get(ticket)
  if (charge === undefined) return
  const flow = flowOf(server, ticket, charge.finish)
  flow.start = Math.max(server.virtualTime, flow.start + (cost - charge.amount) / flow.weight)
  flow.ratio = (flow.ratio + cost / ticket.cost) / 2
}

/** The flow of a counter, or one that begins at `start`. */
function flowOf({ flows }: ServerQueue, { counter, weight, class: queueClass }: Ticket, start: number): Flow {
  const flow = flows.get(counter) ?? { start, weight, class: queueClass, ratio: 1, tickets: new Set() }
  flows.set(counter, flow)
  return flow
}

type First = { flow: Flow; ticket: Ticket }

function firstOfEachClass(
  server: ServerQueue,
  isHeld: (ticket: Ticket) => boolean,
): Partial<Record<QueueClass, First>> {
  const firsts: Partial<Record<QueueClass, First>> = {}
  for (const [counter, flow] of server.flows) {
    if (flow.tickets.size === 0 && flow.start <= server.virtualTime) server.flows.delete(counter)
    const first = firsts[flow.class]
    if (first !== undefined && flow.start >= first.flow.start) continue
    const ticket = findReady(flow, isHeld)
    if (ticket !== undefined) firsts[flow.class] = { flow, ticket }
  }
  return firsts
}

/** The requests of a counter share a key, but not always their budgets. */
function findReady({ tickets }: Flow, isHeld: (ticket: Ticket) => boolean): Ticket | undefined {
  for (const ticket of tickets) if (!isHeld(ticket)) return ticket
  return undefined
}
