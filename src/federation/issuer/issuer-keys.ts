// Finds the key that verifies a subject token (reference: Issuer keys). It has a cache per issuer, filled by discovery,
// from a JWKS URL or from a pasted set.
import type { IssuerKeySet } from '../../../db/schema/schema.ts'
import { describeError } from '../../fault.ts'
import { issuerKeysCooldownSeconds, issuerPatienceMilliseconds } from '../../limits.ts'
import type { Log } from '../../observe/log.ts'
import { type Refusal, refuse } from '../subject-token/refusal.ts'
import { fetchKeys } from './fetch-keys.ts'
import type { Outbound } from './guarded-fetch.ts'
import { type Issuer, sourceOf } from './issuer.ts'
import { notFetched, refuseExpired } from './key-expiry.ts'
import { type VerificationKey, writeKeySet } from './key-set.ts'
import { isRefusalOf, type KeyQuery, pick } from './pick-key.ts'
import { type RestoredKeys, readStoredKeys, restoreKeys, restoreTimes } from './stored-keys.ts'

type KeyFinding = VerificationKey | Refusal

export type IssuerKeys = {
  /** The one key that matches the token's `kid` and algorithm; at once, unless the set is stale or lacks it and is fetched. */
  find: (issuer: Issuer, token: KeyQuery) => KeyFinding | Promise<KeyFinding>
  /**
   * Fetches the key set now and stores it.
   * @throws Fault `unavailable` with the cause
   */
  refresh: (issuer: Issuer) => Promise<IssuerKeySet>
  /** Reports the state of the keys for health checks and metrics. It fetches nothing. */
  stateOf: (issuer: Issuer) => IssuerKeysState
}

/**
 * `failures` counts failed fetches since the last success, `failuresTotal` since startup or the last edit. `keySet` is
 * undefined if none was fetched. The keys stay usable for `usableMilliseconds`, which is negative after that time.
 * `expiresAt` is when a bundle or a pasted set stops being usable, in milliseconds since 1970. `failing` has the time of the first of the
 * failures, in milliseconds since 1970, and the error of the last, for those who may know it. `fetches` counts those that this process started.
 */
export type IssuerKeysState = {
  expiresAt?: number
  failures: number
  failuresTotal: number
  fetches: number
  failing?: { since: number; error: unknown } | undefined
  keySet: { ageMilliseconds: number; usableMilliseconds: number } | undefined
}

export type IssuerKeysOptions = {
  outbound: Outbound
  /** Milliseconds since 1970 UTC, for values that the database stores. */
  now: () => number
  /** Monotonic milliseconds, for values in memory: they age correctly even if the machine's clock changes. */
  monotonic: () => number
  /** At least 0 and below 1. It spreads the requests to an issuer that is available again. */
  random: () => number
  /** Stores a newly fetched key set, unless the issuer was edited since the fetch began. */
  keep: (issuer: Issuer, keySet: IssuerKeySet) => Promise<void>
  log: Log
  /** How long keys stay usable after they expire. */
  graceMilliseconds: number
  afterWait?: () => Promise<void> | undefined
  adopt?: ((issuer: Issuer, into: RestoredKeys) => Promise<void>) | undefined
}

/**
 * The state of one issuer's keys. Times are monotonic milliseconds; `freshUntil` is Infinity for a pasted set, which
 * only its admin replaces. Fetches are numbered as they start: `keys` are from fetch `keysFromFetch`. After `failures`
 * consecutive failures, no fetch starts before `retryAt`.
 */
type CachedKeys = RestoredKeys & {
  failures: number
  failuresTotal: number
  failing: IssuerKeysState['failing']
  retryAt: number
  /** When a fetch last started for an unknown `kid`. */
  lastKidFetchAt: number
  fetchesStarted: number
  keysFromFetch: number
  fetching: Promise<IssuerKeySet> | undefined
}

/** The keys of all issuers, by immutable issuer value: an edit creates a new value and so an empty entry. */
type KeyCache = IssuerKeysOptions & { entries: WeakMap<Issuer, CachedKeys> }

export function createIssuerKeys(options: IssuerKeysOptions): IssuerKeys {
  const cache: KeyCache = { ...options, entries: new WeakMap() }
  return {
    find: (issuer, token) => findKey(cache, issuer, token),
    refresh: (issuer) => {
      if (issuer.jwks !== null) throw notFetched(issuer)
      return refresh(cache, issuer)
    },
    stateOf: (issuer) => stateOf(cache, issuer),
  }
}

function findKey(cache: KeyCache, issuer: Issuer, token: KeyQuery): KeyFinding | Promise<KeyFinding> {
  const expired = refuseExpired(issuer, cache.now(), cache.graceMilliseconds)
  if (expired !== undefined) return expired
  const { keys, freshUntil } = entryOf(cache, issuer)
  const found = cache.monotonic() < freshUntil && keys.length > 0 ? pick(keys, token) : undefined
  return found === undefined || isRefusalOf(found, 'kid_unknown') ? findRenewed(cache, issuer, token) : found
}

async function findRenewed(cache: KeyCache, issuer: Issuer, token: KeyQuery): Promise<KeyFinding> {
  const cached = entryOf(cache, issuer)
  const startedBefore = cached.fetchesStarted
  if (cache.monotonic() >= cached.freshUntil) await cache.adopt?.(issuer, cached)
  if (cache.monotonic() >= cached.freshUntil) await renewInTime(cache, issuer, token)
  if (!isUsable(cache, issuer)) {
    const retryAfterSeconds = Math.max(1, Math.ceil((cached.retryAt - cache.monotonic()) / 1_000))
    return { ...refuse('issuer_keys_unavailable'), retryAfterSeconds }
  }
  if (isRefusalOf(pick(cached.keys, token), 'kid_unknown')) await cache.adopt?.(issuer, cached)
  // While the stored set is read, a fetch for another request can end.
  let found = pick(cached.keys, token)
  // A fetch that started before this request can miss a new key, so only a later fetch is conclusive.
  while (
    isRefusalOf(found, 'kid_unknown') &&
    cached.keysFromFetch <= startedBefore &&
    (await renewForKid(cache, issuer))
  ) {
    await cache.afterWait?.()
    found = pick(cached.keys, token)
  }
  return found
}

function entryOf({ entries, now, monotonic }: KeyCache, issuer: Issuer): CachedKeys {
  const known = entries.get(issuer)
  if (known !== undefined) return known
  const never = Number.NEGATIVE_INFINITY
  const empty = {
    ...{ keys: [], fetchedAt: never, storedFetchedAt: never, freshUntil: never, retryAt: never, lastKidFetchAt: never },
    ...{ failures: 0, failuresTotal: 0, failing: undefined, fetchesStarted: 0, keysFromFetch: 0 },
    ...{ fetching: undefined, spiffeSequence: undefined },
  }
  const cached: CachedKeys =
    issuer.jwks === null
      ? { ...empty, ...restoreKeys(issuer, { now, monotonic }) }
      : { ...empty, keys: readStoredKeys(issuer.jwks), freshUntil: Number.POSITIVE_INFINITY }
  entries.set(issuer, cached)
  return cached
}

/** Stale keys stay usable while the issuer is unreachable, for as long as its admin allows. */
function isUsable(cache: KeyCache, issuer: Issuer): boolean {
  const { keys, freshUntil } = entryOf(cache, issuer)
  return keys.length > 0 && cache.monotonic() < freshUntil + issuer.keysStaleSeconds * 1_000
}

function stateOf(cache: KeyCache, issuer: Issuer): IssuerKeysState {
  const known = cache.entries.get(issuer)
  const { failures = 0, failuresTotal = 0, failing, fetchesStarted: fetches = 0 } = known ?? {}
  const counts = { failures, failuresTotal, failing, fetches }
  if (issuer.keysExpireAt !== null)
    return { ...counts, keySet: undefined, expiresAt: issuer.keysExpireAt + cache.graceMilliseconds }
  const times = known ?? restoreTimes(issuer, cache)
  if (times === undefined || !Number.isFinite(times.fetchedAt)) return { ...counts, keySet: undefined }
  const now = cache.monotonic()
  const usableMilliseconds = times.freshUntil + issuer.keysStaleSeconds * 1_000 - now
  return { ...counts, keySet: { ageMilliseconds: now - times.fetchedAt, usableMilliseconds } }
}

/** Starts a fetch, or joins the running one. */
function refresh(cache: KeyCache, issuer: Issuer): Promise<IssuerKeySet> {
  const cached = entryOf(cache, issuer)
  cached.fetching ??= fetchInto(cache, issuer)
    .catch((error: unknown) => noteFailure(cache, issuer, error))
    .finally(() => {
      cached.fetching = undefined
    })
  return cached.fetching
}

async function fetchInto(cache: KeyCache, issuer: Issuer): Promise<IssuerKeySet> {
  const { now, monotonic, outbound, keep } = cache
  const cached = entryOf(cache, issuer)
  cached.fetchesStarted += 1
  const { keys, freshMilliseconds, spiffeSequence } = await fetchKeys(issuer, outbound, cached.spiffeSequence)
  const fetchedAt = now()
  cached.keys = keys
  cached.spiffeSequence = spiffeSequence
  cached.fetchedAt = monotonic()
  cached.storedFetchedAt = fetchedAt
  cached.freshUntil = cached.fetchedAt + freshMilliseconds
  cached.keysFromFetch = cached.fetchesStarted
  cached.failures = 0
  cached.failing = undefined
  const keySet: IssuerKeySet = {
    issuerId: issuer.id,
    source: sourceOf(issuer),
    jwks: writeKeySet(keys, spiffeSequence),
    fetchedAt,
    freshUntil: fetchedAt + freshMilliseconds,
  }
  await keep(issuer, keySet)
  return keySet
}

/** Runs once per fetch, however many requests wait for it. */
function noteFailure(cache: KeyCache, issuer: Issuer, error: unknown): never {
  const cached = entryOf(cache, issuer)
  const seconds = isUsable(cache, issuer) ? issuerKeysCooldownSeconds : backoffSeconds(cached.failures, cache.random())
  cached.failures += 1
  cached.failing = { since: cached.failing?.since ?? cache.now(), error }
  cached.failuresTotal += 1
  cached.retryAt = cache.monotonic() + seconds * 1_000
  const { id: issuer_id, issuerUrl: issuer_url } = issuer
  cache.log('warn', 'issuer_keys_fetch_failed', { issuer_id, issuer_url, reason: describeError(error) })
  throw error
}

/** Returns 1, 2, 4, … 30 s, minus up to a quarter at random. */
function backoffSeconds(failures: number, random: number): number {
  return Math.min(issuerKeysCooldownSeconds, 2 ** failures) * (1 - random / 4)
}

/** Fetches unless a fetch failed recently. Returns whether the fetch succeeded. */
async function renew(cache: KeyCache, issuer: Issuer): Promise<boolean> {
  const { retryAt, fetching } = entryOf(cache, issuer)
  if (cache.monotonic() < retryAt && fetching === undefined) return false
  return refresh(cache, issuer).then(
    () => true,
    () => false,
  )
}

/** Waits only briefly for a slow issuer if a usable key matches; the response serves later requests. */
async function renewInTime(cache: KeyCache, issuer: Issuer, token: KeyQuery): Promise<void> {
  const { keys } = entryOf(cache, issuer)
  const renewal = renew(cache, issuer)
  const hasKey = isUsable(cache, issuer) && !isRefusalOf(pick(keys, token), 'kid_unknown')
  let timer: ReturnType<typeof setTimeout> | undefined
  const patience = new Promise<void>((resolve) => {
    if (hasKey) timer = setTimeout(resolve, issuerPatienceMilliseconds)
  })
  await Promise.race([renewal, patience])
  clearTimeout(timer)
  await cache.afterWait?.()
}

/** Fetches because a `kid` is unknown. Starts at most one such fetch per cooldown. */
async function renewForKid(cache: KeyCache, issuer: Issuer): Promise<boolean> {
  if (issuer.jwks !== null) return false
  const cached = entryOf(cache, issuer)
  if (cached.fetching === undefined) {
    const at = cache.monotonic()
    if (at - cached.lastKidFetchAt < issuerKeysCooldownSeconds * 1_000 || at < cached.retryAt) return false
    cached.lastKidFetchAt = at
  }
  return renew(cache, issuer)
}
