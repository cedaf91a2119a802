// Commits admin changes. Changes queued in the same turn of the event loop share a transaction, and each fails alone.
import { setImmediate } from 'node:timers'
import { isBusy } from './open.ts'
import { type Bulk, mergeBulks, type Statement } from './rows.ts'

/** The most changes that share a transaction. */
export const changesPerCommitMax = 100

/** Identifies one attempt to commit, so that a plan can find what earlier plans in the same attempt created. */
export type Transaction = object

export type Change = {
  statements: (Statement | Bulk)[]
  /** Applies the change in memory after its commit, before the next transaction is planned. */
  load: () => void | Promise<void>
}

export type CommitChange = <Planned extends Change>(plan: (transaction: Transaction) => Planned) => Promise<Planned>

type Waiting = {
  plan: (transaction: Transaction) => { statements: (Statement | Bulk)[]; finish: () => Promise<void> }
  fail: (error: unknown) => void
}
type Commit = (statements: Statement[]) => Promise<void>

/**
 * Creates a queue. `change` plans a change when its transaction begins, after all earlier changes, and resolves once
 * the change is committed and loaded. If a transaction fails, each of its changes is planned again and committed alone.
 */
export function createChangeQueue(commit: Commit): { change: CommitChange; close: () => Promise<void> } {
  const queue: Waiting[] = []
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
    await commitTogether(commit, queue.splice(0, changesPerCommitMax))
    schedule()
  }

  return {
    change: (plan) =>
      new Promise((resolve, fail) => {
        const planThis: Waiting['plan'] = (transaction) => {
          const planned = plan(transaction)
          const finish = async () => {
            await planned.load()
            resolve(planned)
          }
          return { statements: planned.statements, finish }
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

async function commitTogether(commit: Commit, group: Waiting[]): Promise<void> {
  const planned = planAll(group)
  if (planned.length === 0) return
  try {
    await commit(mergeBulks(planned.flatMap(({ statements }) => statements)))
  } catch (error) {
    if (planned.length === 1 || isBusy(error)) for (const { waiting } of planned) waiting.fail(error)
    else for (const { waiting } of planned) await commitTogether(commit, [waiting])
    return
  }
  for (const { waiting, finish } of planned) await finish().catch(waiting.fail)
}

function planAll(group: Waiting[]) {
  const transaction: Transaction = {}
  return group.flatMap((waiting) => {
    try {
      return [{ waiting, ...waiting.plan(transaction) }]
    } catch (error) {
      waiting.fail(error)
      return []
    }
  })
}
