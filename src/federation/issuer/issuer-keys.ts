// Finds the key that verifies a subject token: a cache per issuer, filled by discovery, a JWKS URL or a pasted set (reference: Issuer keys).

import type { IssuerWithKeySet } from '../../../db/issuers.ts'
import type { IssuerKeySet } from '../../../db/schema.ts'
import { describeError, Fault } from '../../fault.ts'
import {
  issuerKeysCooldownSeconds,
  issuerKeysFreshSecondsDefault,
  issuerKeysFreshSecondsMax,
  issuerKeysFreshSecondsMin,
  issuerPatienceMilliseconds,
} from '../../limits.ts'
import type { Log } from '../../observe/log.ts'
import { type } from '../../values/shape.ts'
import type { SubjectToken } from '../subject-token/claims.ts'
import { type Refusal, refuse } from '../subject-token/refusal.ts'
import { fetchDocument, fetchTime, type Outbound } from './guarded-fetch.ts'
import { readKeySet, type VerificationKey, writeKeySet } from './key-set.ts'

type Wanted = Pick<SubjectToken, 'kid' | 'algorithm'>

/** An issuer with the last good key set that the database has for it. */
export type Issuer = Readonly<IssuerWithKeySet>

export type IssuerKeys = {
  /** The one key that fits the token's `kid` and algorithm, fetching the set when it is not fresh or lacks the `kid`. */
  find: (issuer: Issuer, token: Wanted) => Promise<VerificationKey | Refusal>
  /** Fetches the set now and keeps it. @throws Fault `unavailable` telling what is wrong */
  refresh: (issuer: Issuer) => Promise<IssuerKeySet>
}

export type IssuerKeysOptions = {
  outbound: Outbound
  /** Milliseconds since 1970, for what the database keeps. */
  now: () => number
  /** Milliseconds that only grow, for what this process remembers: keys and failures age alike, whatever time the machine is set to. */
  monotonic: () => number
  /** From 0 to below 1, so that not everybody asks an issuer that is back in the same moment. */
  random: () => number
  /** Keeps a newly fetched set in the database, unless the issuer has been edited since the fetch began. */
  keep: (issuer: Issuer, keySet: IssuerKeySet) => Promise<void>
  log: Log
}

/**
 * Times in monotonic milliseconds. `freshUntil` Infinity: a pasted set, which only its admin renews. After so many
 * `failures` in a row there is no fetch before `retryAt`, and after one that was begun for an unknown `kid` no other for a cool-down.
 * Fetches are numbered as they begin: `keys` are from the one that `keysFromFetch` names.
 */
type Cached = {
  keys: VerificationKey[]
  freshUntil: number
  failures: number
  retryAt: number
  lastKidFetchAt: number
  fetchesStarted: number
  keysFromFetch: number
  fetching: Promise<IssuerKeySet> | undefined
}

const discoveryShape = type({ issuer: 'string', jwks_uri: 'string' })

export function createIssuerKeys(options: IssuerKeysOptions): IssuerKeys {
  const { now, monotonic, log } = options
  // Keyed by the immutable issuer value: an edit makes a new value, and with it an empty cache.
  const cache = new WeakMap<Issuer, Cached>()

  function cachedFor(issuer: Issuer): Cached {
    const known = cache.get(issuer)
    if (known !== undefined) return known
    const never = Number.NEGATIVE_INFINITY
    const fresh = {
      keys: [],
      freshUntil: never,
      failures: 0,
      retryAt: never,
      lastKidFetchAt: never,
      fetchesStarted: 0,
      keysFromFetch: 0,
      fetching: undefined,
    }
    const cached: Cached =
      issuer.jwks === null
        ? { ...fresh, ...restore(issuer, options) }
        : { ...fresh, keys: readStored(issuer.jwks), freshUntil: Number.POSITIVE_INFINITY }
    cache.set(issuer, cached)
    return cached
  }

  async function refresh(issuer: Issuer): Promise<IssuerKeySet> {
    const cached = cachedFor(issuer)
    cached.fetching ??= fetchInto(issuer, cached)
      .catch((error: unknown) => noteFailure(issuer, cached, error))
      .finally(() => {
        cached.fetching = undefined
      })
    return cached.fetching
  }

  /** Once for each fetch, however many wait for it. */
  function noteFailure(issuer: Issuer, cached: Cached, error: unknown): never {
    const step = isUsable(issuer, cached) ? issuerKeysCooldownSeconds : backoffSeconds(cached.failures)
    cached.failures += 1
    cached.retryAt = monotonic() + step * 1_000
    const { id: issuer_id, issuerUrl: issuer_url } = issuer
    log('warn', 'issuer_keys_fetch_failed', { issuer_id, issuer_url, reason: describeError(error) })
    throw error
  }

  /** 1, 2, 4 … 30 s, less up to a quarter at random. */
  function backoffSeconds(failures: number): number {
    return Math.min(issuerKeysCooldownSeconds, 2 ** failures) * (1 - options.random() / 4)
  }

  async function fetchInto(issuer: Issuer, cached: Cached): Promise<IssuerKeySet> {
    cached.fetchesStarted += 1
    const time = fetchTime()
    const jwksUrl = issuer.jwksUrl ?? (await discover(issuer, options.outbound, time))
    const { document, cacheControl } = await fetchDocument(options.outbound, jwksUrl, issuer.caPem, time)
    const keys = readFetched(document, jwksUrl)
    const fetchedAt = now()
    const freshMilliseconds = freshSeconds(cacheControl) * 1_000
    const kept = { jwks: writeKeySet(keys), fetchedAt, freshUntil: fetchedAt + freshMilliseconds }
    const keySet: IssuerKeySet = { issuerId: issuer.id, source: sourceOf(issuer), ...kept }
    cached.keys = keys
    cached.freshUntil = monotonic() + freshMilliseconds
    cached.keysFromFetch = cached.fetchesStarted
    cached.failures = 0
    await options.keep(issuer, keySet)
    return keySet
  }

  /** Joins the running fetch or starts one if none failed just now. Answers whether it succeeded. */
  async function renew(issuer: Issuer, cached: Cached): Promise<boolean> {
    if (monotonic() < cached.retryAt && cached.fetching === undefined) return false
    return refresh(issuer).then(
      () => true,
      () => false,
    )
  }

  const isUsable = ({ keysStaleSeconds }: Issuer, { keys, freshUntil }: Cached) =>
    keys.length > 0 && monotonic() < freshUntil + keysStaleSeconds * 1_000

  /** Where a kept key fits, an issuer that hangs holds nobody up for long; its answer serves those who come later. */
  async function renewInTime(issuer: Issuer, cached: Cached, token: Wanted): Promise<void> {
    const renewal = renew(issuer, cached)
    const hasKey = isUsable(issuer, cached) && !isRefusalOf(pick(cached.keys, token), 'kid_unknown')
    let timer: ReturnType<typeof setTimeout> | undefined
    const patience = new Promise<void>((resolve) => {
      if (hasKey) timer = setTimeout(resolve, issuerPatienceMilliseconds)
    })
    await Promise.race([renewal, patience])
    clearTimeout(timer)
  }

  /** The same for a set that lacks a `kid`, which may start a fetch once in a cool-down. */
  async function renewForKid(issuer: Issuer, cached: Cached): Promise<boolean> {
    if (issuer.jwks !== null) return false
    if (cached.fetching === undefined) {
      const at = monotonic()
      if (at - cached.lastKidFetchAt < issuerKeysCooldownSeconds * 1_000 || at < cached.retryAt) return false
      cached.lastKidFetchAt = at
    }
    return renew(issuer, cached)
  }

  return {
    find: async (issuer, token) => {
      const cached = cachedFor(issuer)
      const startedBefore = cached.fetchesStarted
      if (monotonic() >= cached.freshUntil) await renewInTime(issuer, cached, token)
      if (!isUsable(issuer, cached)) {
        const retryAfterSeconds = Math.max(1, Math.ceil((cached.retryAt - monotonic()) / 1_000))
        return { ...refuse('issuer_keys_unavailable'), retryAfterSeconds }
      }
      let found = pick(cached.keys, token)
      // A fetch that began before the token came may have been answered before its key was published: the next one decides.
      while (
        isRefusalOf(found, 'kid_unknown') &&
        cached.keysFromFetch <= startedBefore &&
        (await renewForKid(issuer, cached))
      ) {
        found = pick(cached.keys, token)
      }
      return found
    },
    refresh: (issuer) => {
      if (issuer.jwks !== null) {
        throw new Fault('invalid', 'This issuer has a pasted JWKS, which is not fetched; renew it by an update', {
          hint: ': latchkey issuers update ISSUER --jwks-file FILE',
        })
      }
      return refresh(issuer)
    },
  }
}

function pick(keys: VerificationKey[], { kid, algorithm }: Wanted): VerificationKey | Refusal {
  const [first, second] = keys.filter((key) => key.algorithm === algorithm && (kid === undefined || key.kid === kid))
  if (first === undefined) return refuse('kid_unknown', kid)
  return second === undefined ? first : refuse('kid_ambiguous', kid)
}

function isRefusalOf(value: VerificationKey | Refusal, reason: Refusal['refused']): boolean {
  return 'refused' in value && value.refused === reason
}

/** OpenID Connect Discovery 1.0 §4: the document must name the very issuer it was asked for. */
export async function discover(
  issuer: Pick<Issuer, 'issuerUrl' | 'caPem'>,
  outbound: Outbound,
  time?: AbortSignal,
): Promise<string> {
  const url = `${issuer.issuerUrl.replace(/\/$/, '')}/.well-known/openid-configuration`
  const { document } = await fetchDocument(outbound, url, issuer.caPem, time)
  const discovery = discoveryShape(document)
  if (discovery instanceof type.errors)
    throw new Fault('invalid', `${JSON.stringify(url)} is not a discovery document: it lacks issuer or jwks_uri`)
  if (discovery.issuer !== issuer.issuerUrl) {
    throw new Fault(
      'unavailable',
      `${JSON.stringify(url)} names the issuer ${JSON.stringify(discovery.issuer.slice(0, 256))}, not ${JSON.stringify(issuer.issuerUrl)}`,
    )
  }
  return discovery.jwks_uri
}

function freshSeconds(cacheControl: string | null): number {
  const maxAge = /(?:^|[\s,])max-age="?(\d{1,9})/i.exec(cacheControl ?? '')?.[1]
  const seconds = maxAge === undefined ? issuerKeysFreshSecondsDefault : Number(maxAge)
  return Math.min(Math.max(seconds, issuerKeysFreshSecondsMin), issuerKeysFreshSecondsMax)
}

/** Where the keys come from. A stored set from another source is not used, however the edit and a running fetch were ordered. */
export function sourceOf(issuer: Issuer): string {
  return issuer.jwksUrl ?? `discovery of ${issuer.issuerUrl}`
}

/** The set that the database has. How old one from the future is nobody knows, so it is stale from now on. */
function restore(issuer: Issuer, { now, monotonic }: Pick<IssuerKeysOptions, 'now' | 'monotonic'>): Partial<Cached> {
  const { lastKeySet } = issuer
  if (lastKeySet === null || lastKeySet.source !== sourceOf(issuer)) return {}
  const { jwks, fetchedAt, freshUntil } = lastKeySet
  const freshMilliseconds = fetchedAt > now() ? 0 : freshUntil - now()
  return { keys: readStored(jwks), freshUntil: monotonic() + freshMilliseconds }
}

function readFetched(document: unknown, url: string): VerificationKey[] {
  try {
    return readKeySet(document)
  } catch (cause) {
    throw new Fault('unavailable', `${JSON.stringify(url)}: ${(cause as Error).message}`)
  }
}

/** A set that passed `readKeySet` before it was stored; a damaged one counts as none. */
function readStored(jwks: string): VerificationKey[] {
  try {
    return readKeySet(JSON.parse(jwks))
  } catch {
    return []
  }
}
