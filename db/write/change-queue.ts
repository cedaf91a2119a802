// Commits admin changes. Changes queued in the same turn of the event loop share a transaction, and each fails alone.
import { setImmediate } from 'node:timers'
import { setTimeout as pause } from 'node:timers/promises'
import { isBusy } from '../file/file-errors.ts'
import { isStale, staleError } from '../remote/refresh.ts'
import { isUnknownOutcome, isUnreachable } from '../remote/server-errors.ts'
import { firstPosition, type Revision } from '../remote/shared-database.ts'
import { type Bulk, mergeBulks, type Statement } from './rows.ts'

/** The most changes that share a transaction. */
export const changesPerCommitMax = 100

/** Identifies one attempt to commit, so that a plan can find what earlier plans in the same attempt created. */
export type Transaction = object

/** The newest admin change that a change has taken into account. */
export type Basis = { revision: number }

export type Change = {
  statements: (Statement | Bulk)[]
  /** On a server database, for a change that was planned before its transaction: it fails after any newer change. */
  basis?: Basis | undefined
  /** Applies the change in memory after its commit, before the next transaction is planned. */
  load: () => void | Promise<void>
}

export type CommitChange = <Planned extends Change>(plan: (transaction: Transaction) => Planned) => Promise<Planned>

type PlannedChange = Pick<Change, 'statements' | 'basis'> & { load: () => Promise<void>; done: () => void }
type QueuedChange = { plan: (transaction: Transaction) => PlannedChange; fail: (error: unknown) => void }
/** Returns the revision after the commit, where other nodes commit too and the server has reported it. */
type Commit = (statements: Iterable<Statement>, basis: Revision) => Promise<Revision | undefined>

/** What a queue must know where other nodes commit too. */
export type NodeMemory = {
  /** The newest admin change that is in memory. */
  revision: () => Revision
  /** Brings memory up to date. */
  refresh: () => Promise<void>
  /**
   * Loads what this node has committed on `basis`, unless memory has it by now: what came after it must not be undone.
   * `revision` is the one after the commit, if it is known. What `load` could not load is left to the next refresh.
   */
  takeIn: (
    committed: { basis: Revision; revision: Revision | undefined },
    load: () => Promise<boolean>,
  ) => Promise<void>
}

/** A process that holds its database makes every change itself. */
const alone: NodeMemory = {
  revision: () => firstPosition.revision,
  refresh: async () => {},
  takeIn: async (_committed, load) => void (await load()),
}
/** Changes of other nodes that a transaction is planned again for. */
const staleAttemptsMax = 20
/** Before the second attempt, on average half of it; longer before each later one, so that the nodes take turns. */
const pauseMilliseconds = 4

/**
 * Creates a queue. `change` plans a change when its transaction begins, after all earlier changes, and resolves once
 * the change is committed and loaded. If a transaction fails, each of its changes is planned again and committed alone.
 */
export function createChangeQueue(
  commit: Commit,
  following: NodeMemory = alone,
): { change: CommitChange; close: () => Promise<void> } {
  const queue: QueuedChange[] = []
  let isScheduled = false
  let running: Promise<void> = Promise.resolve()

  function schedule(): void {
    if (isScheduled || queue.length === 0) return
    isScheduled = true
    setImmediate(() => {
      running = running.then(commitNext)
    })
  }

  async function commitNext(): Promise<void> {
    isScheduled = false
    await commitTogether({ commit, following }, queue.splice(0, changesPerCommitMax))
    schedule()
  }

  return {
    change: (plan) =>
      new Promise((resolve, fail) => {
        const planThis: QueuedChange['plan'] = (transaction) => {
          const planned = plan(transaction)
          const load = async () => planned.load()
          return { statements: planned.statements, basis: planned.basis, load, done: () => resolve(planned) }
        }
        queue.push({ plan: planThis, fail })
        schedule()
      }),
    close: async () => {
      do {
        running = running.then(commitNext)
        await running
      } while (queue.length > 0)
    },
  }
}

type CommitContext = { commit: Commit; following: NodeMemory }

async function commitTogether(committing: CommitContext, group: QueuedChange[], attempt = 1): Promise<void> {
  const { commit, following } = committing
  const basis = following.revision()
  const planned = planAll(group, basis.id)
  if (planned.length === 0) return
  let revision: Revision | undefined
  try {
    revision = await commit(mergeBulks(planned.flatMap(({ statements }) => statements)), basis)
  } catch (error) {
    await retry(committing, planned, { error, attempt })
    return
  }
  await following.takeIn({ basis, revision }, () => loadInOrder(planned))
  for (const { basis: own, done } of planned) {
    if (own !== undefined && revision !== undefined) own.revision = revision.id
    done()
  }
}

type PlannedOf = PlannedChange & { waiting: QueuedChange }

/** Each that cannot be loaded fails alone. Returns whether all were loaded. */
async function loadInOrder(planned: PlannedOf[]): Promise<boolean> {
  let isLoaded = true
  for (const { waiting, load } of planned)
    await load().catch((error: unknown) => {
      isLoaded = false
      waiting.fail(error)
    })
  return isLoaded
}

/** After a change of another node all are planned again; otherwise each is committed alone. */
async function retry(
  committing: CommitContext,
  planned: PlannedOf[],
  { error, attempt }: { error: unknown; attempt: number },
): Promise<void> {
  const group = planned.map(({ waiting }) => waiting)
  const failAll = (reason: unknown) => {
    for (const waiting of group) waiting.fail(reason)
  }
  if (isStale(error) && attempt < staleAttemptsMax) {
    try {
      await pause(Math.random() * attempt * pauseMilliseconds)
      await committing.following.refresh()
    } catch (unreachable) {
      return failAll(unreachable)
    }
    await commitTogether(committing, group, attempt + 1)
  } else if (group.length === 1 || isFinal(error)) failAll(error)
  else for (const waiting of group) await commitTogether(committing, [waiting])
}

/** Whether sending each change alone is useless, or would make one twice. */
function isFinal(error: unknown): boolean {
  return isBusy(error) || isStale(error) || isUnreachable(error) || isUnknownOutcome(error)
}

function planAll(group: QueuedChange[], revision: number): PlannedOf[] {
  const transaction: Transaction = {}
  return group.flatMap((waiting) => {
    try {
      const planned = waiting.plan(transaction)
      if (planned.basis !== undefined && planned.basis.revision !== revision) throw staleError()
      return [{ waiting, ...planned }]
    } catch (error) {
      waiting.fail(error)
      return []
    }
  })
}
