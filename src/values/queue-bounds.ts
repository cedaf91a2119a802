// What may be set of queues: at inference servers, and of the keys whose requests wait there.
import { type } from './shape.ts'

/** How long a request waits by default, and at most: clients and proxies give up after ten minutes or earlier. */
export const queueSecondsDefault = 30
const queueSecondsMax = 600
/** How often a server is probed by default. */
export const probeSecondsDefault = 5
/** More requests at once than any inference server runs. */
const runningRequestsMax = 100_000
/** Shares beyond one to a hundred are better made with classes. */
const weightMax = 100

export const queueSecondsShape = type(`0 <= number.integer <= ${queueSecondsMax}`)
export const runningRequestsShape = type(`1 <= number.integer <= ${runningRequestsMax} | null`)
/** A share beside others. */
export const weightShape = type(`1 <= number.integer <= ${weightMax}`)
