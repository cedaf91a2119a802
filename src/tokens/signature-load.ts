// Where a signature is verified: at once, or on the runtime's thread pool. At once costs less CPU time, but everything
// else waits for it; the pool uses all cores. So the signature of a lone exchange is verified at once, and those of a
// crowd on the pool.
import { setImmediate } from 'node:timers'

/** More signatures in one turn of the event loop are a crowd. With one, two to eight exchanges at a time cost more. */
const signaturesAtOnceMax = 2

let inThisTurn = 0
let inLastTurn = 0
let onPool = 0

/** Counts one signature, and returns whether to verify it at once. */
export function isLoneSignature(): boolean {
  if (inThisTurn === 0) setImmediate(endTurn)
  inThisTurn += 1
  return onPool === 0 && inThisTurn <= signaturesAtOnceMax && inLastTurn <= signaturesAtOnceMax
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
  if (inLastTurn > signaturesAtOnceMax) setImmediate(endQuietTurn)
}

function endQuietTurn(): void {
  if (inThisTurn === 0) inLastTurn = 0
}
