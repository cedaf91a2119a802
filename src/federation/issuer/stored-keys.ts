// Reads the key sets that the database stores: the last good set of each issuer, and pasted sets. It fetches nothing.
import { type Issuer, sourceOf } from './issuer.ts'
import { readKeySet, spiffeSequenceOf, type VerificationKey } from './key-set.ts'

type Clocks = { now: () => number; monotonic: () => number }
/**
 * Times are monotonic milliseconds, except `storedFetchedAt`, which is milliseconds since 1970 as the database has it.
 * `spiffeSequence` is that of the last SPIFFE bundle document.
 */
export type RestoredKeys = {
  keys: VerificationKey[]
  spiffeSequence: number | undefined
  fetchedAt: number
  storedFetchedAt: number
  freshUntil: number
}

/** Restores the stored set of an issuer. A set with a future time has an unknown age and is stale at once. */
export function restoreKeys(issuer: Issuer, clocks: Clocks): RestoredKeys | undefined {
  const { lastKeySet } = issuer
  const times = restoreTimes(issuer, clocks)
  if (lastKeySet === null || times === undefined) return undefined
  const { jwks, fetchedAt: storedFetchedAt } = lastKeySet
  return { ...times, storedFetchedAt, keys: readStoredKeys(jwks), spiffeSequence: readStoredSequence(jwks) }
}

/** Reads a set that passed `readKeySet` before it was stored. A damaged set returns no keys. */
export function restoreTimes(
  issuer: Issuer,
  { now, monotonic }: Clocks,
): Pick<RestoredKeys, 'fetchedAt' | 'freshUntil'> | undefined {
  const { lastKeySet } = issuer
  if (lastKeySet === null || lastKeySet.source !== sourceOf(issuer)) return undefined
  const { fetchedAt, freshUntil } = lastKeySet
  const freshMilliseconds = fetchedAt > now() ? 0 : freshUntil - now()
  const ageMilliseconds = Math.max(0, now() - fetchedAt)
  return { fetchedAt: monotonic() - ageMilliseconds, freshUntil: monotonic() + freshMilliseconds }
}

/** A set that passed `readKeySet` before it was stored; a damaged one counts as none. */
export function readStoredKeys(jwks: string): VerificationKey[] {
  try {
    return readKeySet(JSON.parse(jwks))
  } catch {
    return []
  }
}

/** The `spiffe_sequence` of a stored set. */
export function readStoredSequence(jwks: string): number | undefined {
  try {
    return spiffeSequenceOf(JSON.parse(jwks))
  } catch {
    return undefined
  }
}

/** Takes over a set that was stored after the known one was fetched. */
export async function adoptNewer(
  issuer: Issuer,
  into: RestoredKeys,
  { read, ...clocks }: Clocks & { read: (issuerId: string) => Promise<Issuer['lastKeySet'] | undefined> },
): Promise<void> {
  if (issuer.jwks !== null) return
  const lastKeySet = await read(issuer.id)
  const restored = lastKeySet && restoreKeys({ ...issuer, lastKeySet }, clocks)
  // The read can have begun before this node stored its own. The age of a set depends on two clocks, so it cannot decide.
  if (restored && restored.storedFetchedAt > into.storedFetchedAt) Object.assign(into, restored)
}
