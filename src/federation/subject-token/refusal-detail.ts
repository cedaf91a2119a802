// The detail of a refusal: the actual and the expected value, quoted, bounded and without credentials. Only the audit
// and admins see it, never the caller of the token endpoint.
import { withoutSecrets } from '../../fault.ts'
import { explainedCharactersMax } from '../../limits.ts'

/** Describes both sides of a comparison. */
export function describeMismatch(has: unknown, wants: string): string {
  return `the token has ${quote(has)}, the policy wants ${quote(wants)}`
}

/** Describes a claim of a type that no condition accepts. */
export function describeWrongType(has: unknown, type: string): string {
  return `the token has ${quote(has)}, the condition needs ${type}`
}

/** Returns JSON of at most `explainedCharactersMax` characters, so that both sides fit in the audit. */
export function quote(value: unknown): string {
  const text = withoutSecrets(JSON.stringify(value) ?? 'nothing')
  if (text.length <= explainedCharactersMax) return text
  const characters = [...text]
  if (characters.length <= explainedCharactersMax) return text
  return `${characters.slice(0, explainedCharactersMax).join('')}…`
}

/** `exp` is in seconds and `now` in milliseconds, both since 1970 UTC. */
export function describeExpiry(exp: number, now: number): string {
  return `exp ${exp} is ${timeOf(exp * 1_000)}, now it is ${timeOf(now)}`
}

/** Describes a time claim (seconds) that is ahead of `now` (milliseconds) by more than the issuer's clock skew. */
export function describeAhead(claim: string, value: number, now: number, skewSeconds: number): string {
  return `${claim} ${value} is ${timeOf(value * 1_000)}, now it is ${timeOf(now)}; it may be ${skewSeconds} s ahead`
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
