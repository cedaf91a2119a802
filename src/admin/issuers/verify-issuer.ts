// Tests an issuer, saved or not, as an exchange would use it: discovery, keys, certificates and clock.

import { describeError, Fault, tellForCommands } from '../../fault.ts'
import { discover } from '../../federation/issuer/fetch-keys.ts'
import { fetchDocument } from '../../federation/issuer/guarded-fetch.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import { readKeySet } from '../../federation/issuer/key-set.ts'
import { quote } from '../../federation/subject-token/refusal-detail.ts'
import type { Needs } from '../operation/context.ts'
import { seesCauses } from '../operation/installation.ts'
import { readPastedKeySet } from './pasted-key-set.ts'

type Check = { step: 'discovery' | 'keys' | 'clock'; ok: boolean; detail: string }
export type IssuerVerification = {
  issuer_url: string
  ok: boolean
  checks: Check[]
  keys: { kid: string | null; algorithm: string }[]
}
/** `jwks` is a pasted set, usable or not. */
export type IssuerToVerify = Pick<Issuer, 'issuerUrl' | 'jwksUrl' | 'jwks' | 'caPem' | 'clockSkewSeconds'> &
  Partial<Pick<Issuer, 'keysExpireAt'>>

/** Fetches what an exchange would fetch, and saves nothing. Problems are reported, not thrown. */
export async function verifyIssuer(
  context: Needs<'outbound' | 'now' | 'log' | 'actor' | 'role' | 'registry'>,
  issuer: IssuerToVerify,
): Promise<IssuerVerification> {
  const { outbound, now, log, actor } = context
  const checks: Check[] = []
  const keys: IssuerVerification['keys'] = []
  try {
    const jwksUrl = issuer.jwks === null ? (issuer.jwksUrl ?? (await discover(issuer, outbound))) : undefined
    if (issuer.jwks === null && issuer.jwksUrl === null)
      checks.push({ step: 'discovery', ok: true, detail: `keys are at ${jwksUrl}` })
    const fetched = jwksUrl === undefined ? undefined : await fetchDocument(outbound, jwksUrl, issuer.caPem)
    const usable = fetched === undefined ? readPastedKeySet(issuer.jwks ?? '') : readKeySet(fetched.document)
    for (const { kid, algorithm } of usable) keys.push({ kid: kid ?? null, algorithm })
    checks.push(checkKeys(keys))
    if (issuer.keysExpireAt != null) checks.push(checkExpiry(issuer.keysExpireAt, now()))
    if (fetched?.date != null) checks.push(checkClock(fetched.date, now(), issuer.clockSkewSeconds))
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const step = issuer.jwks === null && issuer.jwksUrl === null && checks.length === 0 ? 'discovery' : 'keys'
    if (actor.kind === 'key' && error.hint !== '')
      log('warn', 'issuer_verification_failed', { issuer_url: issuer.issuerUrl, reason: describeError(error) })
    checks.push({ step, ok: false, detail: describeFor(context, error) })
  }
  return { issuer_url: issuer.issuerUrl, ok: checks.every(({ ok }) => ok), checks, keys }
}

/** Why an issuer could not be fetched, for those who may read it. Others learn only that the log has the reason. */
export function describeFor(context: Needs<'actor' | 'role' | 'registry'>, fault: Fault): string {
  if (seesCauses(context)) return tellForCommands(fault)
  return fault.hint === '' ? fault.message : `${fault.message}; the server log has the reason`
}

/** If two keys have the same kid and algorithm, an exchange refuses every token signed with either. */
function checkKeys(keys: IssuerVerification['keys']): Check {
  const counts = new Map<string, number>()
  for (const { kid, algorithm } of keys) {
    const named = `${algorithm} keys ${kid === null ? 'have no kid' : `share the kid ${quote(kid)}`}`
    counts.set(named, (counts.get(named) ?? 0) + 1)
  }
  const alike = [...counts].filter(([, count]) => count > 1).map(([named, count]) => `${count} ${named}`)
  if (alike.length === 0) return { step: 'keys', ok: true, detail: `${keys.length} usable` }
  const more = alike.length > alikeShownMax ? ` and ${alike.length - alikeShownMax} more such` : ''
  const listed = alike.slice(0, alikeShownMax).join(', ') + more
  return { step: 'keys', ok: false, detail: `${listed}: exchanges refuse their tokens as kid_ambiguous` }
}

function checkExpiry(expiresAt: number, now: number): Check {
  const ok = now < expiresAt
  return { step: 'keys', ok, detail: `${ok ? 'they expire' : 'they expired'} at ${new Date(expiresAt).toISOString()}` }
}

const alikeShownMax = 3

/** By the Date header of the answer: an `iat` from a clock ahead of ours is refused beyond the skew. */
function checkClock(date: string, now: number, clockSkewSeconds: number): Check {
  const ahead = Math.round((Date.parse(date) - now) / 1_000)
  if (Number.isNaN(ahead)) return { step: 'clock', ok: true, detail: 'its response has no readable Date' }
  const detail = `${Math.abs(ahead)} s ${ahead > 0 ? 'ahead of' : 'behind'} this server (at most ${clockSkewSeconds} s ahead is allowed)`
  return { step: 'clock', ok: ahead <= clockSkewSeconds, detail }
}
