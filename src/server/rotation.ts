// Rotates the signing key on schedule.
import type { SigningKey } from '../../db/schema/schema.ts'
import { listSigningKeys } from '../../db/tables/signing-keys.ts'
import type { RunOperation } from '../admin/operations.ts'
import { describeError, Fault } from '../fault.ts'
import { signingKeyCheckMilliseconds } from '../limits.ts'
import { every } from '../scheduling/every.ts'
import { isDue, signingKeyState } from '../tokens/signing-keys.ts'
import type { Context } from './context.ts'

/** Rotates the signing key when it is due, now and on a timer. Returns a function that stops the timer. */
export async function rotateOnSchedule(
  { config, now, orm, log }: Context,
  runOperation: RunOperation,
): Promise<() => void> {
  const { signingKeyDays } = config
  if (signingKeyDays === undefined) return () => {}
  const rotateWhenDue = async () => {
    const newest = newestOf(await listSigningKeys(orm), now())
    if (newest === undefined || now() < newest.activeAt + signingKeyDays * 24 * 60 * 60 * 1_000) return
    await runOperation('signing_keys.rotate', {}, { kind: 'server' })
  }
  const logFailure = (error: unknown) => {
    // Another node was faster, and its key waits for its time.
    if (error instanceof Fault && error.code === 'conflict') return
    log('error', 'signing_key_rotation_failed', { reason: describeError(error) })
  }
  await rotateWhenDue().catch(logFailure)
  return every(signingKeyCheckMilliseconds, rotateWhenDue, logFailure)
}

/** The newest key that signs or is about to. One of the far future was made while the clock was wrong. */
function newestOf(rows: readonly SigningKey[], now: number): SigningKey | undefined {
  return rows.findLast((row) => isDue(row, now) && ['next', 'signing'].includes(signingKeyState(row, now)))
}
