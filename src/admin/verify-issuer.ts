// A dry run against a real issuer, before or after it is saved: discovery, keys, certificates and clock, as an exchange would meet them.
import type { AdminContext } from '../context.ts'
import { Fault } from '../fault.ts'
import { fetchDocument } from '../federation/guarded-fetch.ts'
import { discover } from '../federation/issuer-keys.ts'
import { readKeySet } from '../federation/key-set.ts'
import type { Issuer } from '../registry.ts'

type Check = { step: 'discovery' | 'keys' | 'clock'; ok: boolean; detail: string }
export type IssuerVerification = {
  issuer_url: string
  ok: boolean
  checks: Check[]
  keys: { kid: string | null; algorithm: string }[]
}
export type IssuerToVerify = Pick<Issuer, 'issuerUrl' | 'jwksUrl' | 'jwks' | 'caPem' | 'clockSkewSeconds'>

/** Fetches what an exchange would fetch and saves nothing. What goes wrong is told, not thrown. */
export async function verifyIssuer(
  { outbound, now }: AdminContext,
  issuer: IssuerToVerify,
): Promise<IssuerVerification> {
  const checks: Check[] = []
  const keys: IssuerVerification['keys'] = []
  try {
    const jwksUrl = issuer.jwks === null ? (issuer.jwksUrl ?? (await discover(issuer, outbound))) : undefined
    if (issuer.jwks === null && issuer.jwksUrl === null)
      checks.push({ step: 'discovery', ok: true, detail: `keys are at ${jwksUrl}` })
    const fetched = jwksUrl === undefined ? undefined : await fetchDocument(outbound, jwksUrl, issuer.caPem)
    const document: unknown = fetched === undefined ? JSON.parse(issuer.jwks ?? '') : fetched.document
    for (const { kid, algorithm } of readKeySet(document)) keys.push({ kid: kid ?? null, algorithm })
    checks.push({ step: 'keys', ok: true, detail: `${keys.length} usable` })
    if (fetched?.date != null) checks.push(checkClock(fetched.date, now(), issuer.clockSkewSeconds))
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const step = issuer.jwks === null && issuer.jwksUrl === null && checks.length === 0 ? 'discovery' : 'keys'
    checks.push({ step, ok: false, detail: error.message })
  }
  return { issuer_url: issuer.issuerUrl, ok: checks.every(({ ok }) => ok), checks, keys }
}

/** By the Date header of the answer: an `iat` from a clock ahead of ours is refused beyond the skew. */
function checkClock(date: string, now: number, clockSkewSeconds: number): Check {
  const ahead = Math.round((Date.parse(date) - now) / 1_000)
  if (Number.isNaN(ahead)) return { step: 'clock', ok: true, detail: 'its answer has no readable Date' }
  const detail = `${Math.abs(ahead)} s ${ahead > 0 ? 'ahead of' : 'behind'} ours (${clockSkewSeconds} s ahead are allowed)`
  return { step: 'clock', ok: ahead <= clockSkewSeconds, detail }
}
