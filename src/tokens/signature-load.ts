// Where a signature is computed: at once, or on the runtime's thread pool. At once costs about half the CPU time, but
// everything else waits for it; the pool uses all cores. So a lone exchange computes at once, and a crowd on the pool.
import { setImmediate } from 'node:timers'

/** An exchange verifies one signature and makes one. More in one turn of the event loop belong to several requests. */
const signaturesOfOneRequest = 2

let inThisTurn = 0
let inLastTurn = 0
let onPool = 0

/** Counts one signature, and returns whether to compute it at once. */
export function isLoneSignature(): boolean {
  if (inThisTurn === 0) setImmediate(endTurn)
  inThisTurn += 1
  return onPool === 0 && inThisTurn <= signaturesOfOneRequest && inLastTurn <= signaturesOfOneRequest
}

/** Runs work on the pool, so that the signatures that come meanwhile go there too. */
export async function runOnPool<Result>(work: () => Promise<Result>): Promise<Result> {
  onPool += 1
  try {
    return await work()
  } finally {
    onPool -= 1
  }
}

function endTurn(): void {
  inLastTurn = inThisTurn
  inThisTurn = 0
  // Without another signature, nothing else would end the turn after a crowd.
  if (inLastTurn > signaturesOfOneRequest) setImmediate(endQuietTurn)
}

function endQuietTurn(): void {
  if (inThisTurn === 0) inLastTurn = 0
}
