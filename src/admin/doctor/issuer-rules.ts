// When issuers and upstreams need attention: their keys, their clocks and the certificates of their CAs. Rules only.

import { expiryWarningOf } from '../../federation/issuer/key-expiry.ts'
import type { FailureRun } from '../../inference/upstream/reachability.ts'
import { shellWord } from '../../runtime/file-access.ts'
import type { Validity } from '../../values/certificates.ts'
import { dayText, durationText, type Finding, finding, minuteText } from './findings.ts'

export type IssuerFacts = {
  name: string
  /** Those that were fetched. Times in seconds; `usableSeconds` is negative once the keys cannot be used. */
  keys: { usableSeconds: number; staleSeconds: number } | undefined
  /** Failed fetches since the last successful one. */
  fetchFailures: number
  /** Since the first of them, in milliseconds since 1970; the cause of the last one for those who may know it. */
  failing?: { since: number; cause: string | undefined } | undefined
  /** Whether this is a running server that has not fetched them yet. */
  isUnfetched?: boolean
  /** Of a bundle or a pasted set; without `at`, no bundle was imported. `at` in milliseconds. */
  expiry?: { isBundle: boolean; at: number | undefined } | undefined
  /** Whether the only signer of its bundles is removed. */
  isSignerRemoved?: boolean
  ca: Validity | undefined
  /** `now − iat` of recent tokens in seconds. */
  clockDifferences: readonly number[]
  clockSkewSeconds: number
}

export function judgeIssuer(issuer: IssuerFacts, within: string, now: number): Finding[] {
  const who = `the issuer ${JSON.stringify(issuer.name)}${within}`
  const found = [
    judgeKeys(issuer, who, now),
    judgeKeysExpiry(issuer, who, now),
    judgeSigner(issuer, who),
    judgeCa(issuer.ca, who, now),
    judgeClock(issuer, who),
  ]
  return found.flatMap((about) => (about === undefined ? [] : [finding({ area: 'issuers', ...about }, [issuer.name])]))
}

type FindingInput = Omit<Parameters<typeof finding>[0], 'area'>

/** Below this share of their stale time, keys that cannot be fetched are a matter of hours. */
const staleShare = 0.5

/** Keys grow stale without a failure where nobody exchanges, so only failed fetches are a warning. */
function judgeKeys(issuer: IssuerFacts, who: string, now: number): FindingInput | undefined {
  const { name, keys, fetchFailures } = issuer
  const action = `latchkey issuers refresh ${shellWord(name)}; if the server cannot reach the issuer: latchkey issuers update ${shellWord(name)} --jwks-file FILE`
  if (fetchFailures === 0) return judgeIdle(issuer, who, action)
  const fetches = failuresText(issuer)
  if (keys === undefined)
    return {
      level: 'error',
      code: 'issuer_keys_missing',
      message: `The keys of ${who} never arrived, so its tokens are refused: ${fetches}`,
      action,
    }
  if (keys.usableSeconds <= 0)
    return {
      level: 'error',
      code: 'issuer_keys_unusable',
      message: `The keys of ${who} are too old to use, so its tokens are refused: ${fetches}`,
      action,
    }
  const end = minuteText(now + keys.usableSeconds * 1_000)
  const message = `The tokens of ${who} are refused from ${end} on, in ${durationText(keys.usableSeconds)}, if its keys cannot be fetched: ${fetches}`
  return { level: 'warning', code: 'issuer_fetch_failed', message, action }
}

function judgeIdle({ keys, isUnfetched }: IssuerFacts, who: string, action: string): FindingInput | undefined {
  if (keys === undefined) return undefined
  const { usableSeconds, staleSeconds } = keys
  const since =
    usableSeconds <= staleShare * staleSeconds
      ? 'for a long time'
      : isUnfetched === true && usableSeconds <= staleSeconds
        ? 'since the server started'
        : undefined
  if (since === undefined) return undefined
  const message = `The keys of ${who} were not fetched ${since}, because no exchange needed them`
  return { level: 'note', code: 'issuer_keys_idle', message, action }
}

function failuresText({ fetchFailures, failing }: IssuerFacts): string {
  const which = fetchFailures === 1 ? 'the last fetch failed' : `the last ${fetchFailures} fetches failed`
  if (failing === undefined) return which
  const { since, cause } = failing
  const first = fetchFailures === 1 ? '' : ', the first of them'
  return `${which}${first} at ${minuteText(since)}${cause === undefined ? '' : `: ${cause}`}`
}

function judgeKeysExpiry({ name, expiry }: IssuerFacts, who: string, now: number): FindingInput | undefined {
  if (expiry === undefined) return undefined
  const { isBundle, at } = expiry
  const action = isBundle
    ? 'Pack the keys outside with latchkey jwks pack, then: latchkey issuers import FILE'
    : `latchkey issuers update ${shellWord(name)} --jwks-file FILE --keys-expire-at TIME`
  if (at === undefined) {
    const message = `No signed bundle was imported for ${who}, so exchanges are refused`
    return { level: 'error', code: 'issuer_bundle_missing', message, action }
  }
  const days = expiryWarningOf({ keysExpireAt: at }, now)
  if (days === undefined) return undefined
  const code = 'issuer_keys_expire'
  if (days === 0) return { level: 'error', code, message: `The keys of ${who} expired on ${dayText(at)}`, action }
  const message = `The keys of ${who} expire on ${dayText(at)}, in ${durationText((at - now) / 1_000)}`
  return { level: days === 1 ? 'error' : 'warning', code, message, action }
}

function judgeSigner({ name, isSignerRemoved }: IssuerFacts, who: string): FindingInput | undefined {
  if (isSignerRemoved !== true) return undefined
  return {
    level: 'warning',
    code: 'issuer_bundle_signer_removed',
    message: `The bundle signer of ${who} is removed, so no bundle can renew its keys`,
    action: `latchkey issuers update ${shellWord(name)} --bundle-signer SIGNER`,
  }
}

function judgeCa(ca: Validity | undefined, who: string, now: number): FindingInput | undefined {
  const expiry = ca && judgeExpiry(ca, now)
  if (expiry === undefined) return undefined
  const action = 'Get the new certificate and set it with: latchkey issuers update ISSUER --ca-file FILE'
  return {
    level: expiry.level,
    code: 'issuer_ca_expires',
    message: `A CA certificate of ${who} ${expiry.says}`,
    action,
  }
}

/** A median below this is a difference of the clocks: no token comes from the future. */
const aheadSeconds = -2
/** Workloads use tokens for long, but among many one is new. */
const newestAgeSecondsMax = 15 * 60
const tokensForAge = 10

function judgeClock({ clockDifferences, clockSkewSeconds }: IssuerFacts, who: string): FindingInput | undefined {
  const sorted = clockDifferences.toSorted((one, other) => one - other)
  const [newest, median] = [sorted[0], sorted[Math.floor(sorted.length / 2)]]
  if (newest === undefined || median === undefined) return undefined
  const action = 'Synchronize the clock of this machine (NTP), then ask the owner of the issuer about its clock'
  if (median < aheadSeconds) {
    const message = `The clock of ${who} is ${durationText(median)} ahead of this server; tokens that are more than ${clockSkewSeconds} seconds ahead are refused`
    return { level: 'warning', code: 'clock_behind', message, action }
  }
  if (sorted.length < tokensForAge || newest < newestAgeSecondsMax) return undefined
  const message = `Every recent token of ${who} was at least ${durationText(newest)} old (median ${durationText(median)}): this clock may be ahead, or workloads keep their tokens`
  return { level: 'note', code: 'tokens_old', message, action }
}

export type UpstreamFacts = {
  name: string
  ca: Validity | undefined
  /** Undefined unless the last request to it got no usable response. */
  failing: FailureRun | undefined
  /** Milliseconds since requests avoid it after failures. */
  restsFor: number | undefined
  /** Why its last probe failed. */
  probeProblem: string | undefined
  /** Whether servers that work have all of its models. */
  hasOthers: boolean
}

/** One failure can be a single request. */
const failuresMin = 3

/** Whether an upstream fails again and again, so that requests need another one. */
export function isDown({
  failing,
  restsFor,
  probeProblem,
}: Pick<UpstreamFacts, 'failing' | 'restsFor' | 'probeProblem'>) {
  return probeProblem !== undefined || restsFor !== undefined || (failing?.failures ?? 0) >= failuresMin
}

export function judgeUpstream(facts: UpstreamFacts, now: number): Finding[] {
  const { name, ca } = facts
  const which = `the upstream ${JSON.stringify(name)}`
  const expiry = ca && judgeExpiry(ca, now)
  const found: (FindingInput | undefined)[] = [
    judgeReachable(facts, which, now),
    expiry && {
      level: expiry.level,
      code: 'upstream_ca_expires',
      message: `A CA certificate of ${which} ${expiry.says}`,
      action: `latchkey upstreams update ${shellWord(name)} --ca-file FILE`,
    },
  ]
  return found.flatMap((about) => (about === undefined ? [] : [finding({ area: 'upstreams', ...about }, [name])]))
}

/** It is an error where requests have nowhere else to go. */
function judgeReachable(facts: UpstreamFacts, which: string, now: number): FindingInput | undefined {
  const { name, failing, restsFor, probeProblem, hasOthers } = facts
  if (failing === undefined && restsFor === undefined && probeProblem === undefined) return undefined
  const action = `latchkey upstreams check ${shellWord(name)}`
  const isOnly = isDown(facts) && !hasOthers
  const more = isOnly ? '. Its requests have nowhere else to go' : ''
  const level = isOnly ? 'error' : 'warning'
  if (probeProblem !== undefined)
    return {
      level,
      code: 'upstream_probe_failing',
      action,
      message: `The probe of ${which} fails: ${probeProblem}${more}`,
    }
  const milliseconds = Math.max(restsFor ?? 0, failing === undefined ? 0 : now - failing.since)
  const lately = durationText(milliseconds / 1_000)
  const last = failing === undefined ? '' : `: at the last request, ${failing.problem}`
  if (restsFor !== undefined && !isOnly)
    return {
      level,
      code: 'upstream_resting',
      action,
      message: `Requests avoid ${which}, which has failed for ${lately}${last}`,
    }
  const message = isDown(facts)
    ? `Requests to ${which} have failed for ${lately}${last}${more}`
    : `The last request to ${which} failed ${lately} ago: ${failing?.problem}`
  return { level, code: 'upstream_failing', action, message }
}

const expiryMillisecondsMax = 30 * 24 * 60 * 60 * 1_000

/** A certificate is near its end in its last 30 days, or in its last quarter if it lives for less than four months. */
export function judgeExpiry(
  { startsAt, expiresAt }: Validity,
  now: number,
): { level: 'error' | 'warning'; says: string } | undefined {
  if (now >= expiresAt) return { level: 'error', says: `expired on ${dayText(expiresAt)}` }
  if (expiresAt - now > Math.min(expiryMillisecondsMax, (expiresAt - startsAt) / 4)) return undefined
  return { level: 'warning', says: `expires on ${dayText(expiresAt)}, in ${durationText((expiresAt - now) / 1_000)}` }
}
