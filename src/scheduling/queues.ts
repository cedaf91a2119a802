// Queues by name: the work of one name runs one after the other, work of different names at the same time, and few wait.
import { createMutex } from './mutex.ts'

/** Runs the work after everything in the queue of this name. Undefined, without running it, when the queue is full. */
export type RunInQueue = <Result>(name: string, work: () => Promise<Result>) => Promise<Result> | undefined

/** `lengthMax` counts the work that runs: by default, one runs and four wait. A failure does not affect the work after it. Nothing is kept of an empty queue. */
export function createQueues(lengthMax = 5): RunInQueue {
  const queues = new Map<string, { length: number } & Pick<ReturnType<typeof createMutex>, 'runExclusive'>>()
  return (name, work) => {
    const queue = queues.get(name) ?? { length: 0, runExclusive: createMutex().runExclusive }
    if (queue.length >= lengthMax) return undefined
    queue.length += 1
    queues.set(name, queue)
    const result = queue.runExclusive(work)
    const leave = () => {
      queue.length -= 1
      if (queue.length === 0) queues.delete(name)
    }
    result.then(leave, leave)
    return result
  }
}
