// How the detail of a refusal shows what a token has beside what was wanted: quoted, bounded, and without credentials. For the audit and
// for admins; no caller of the token endpoint reads it.
import { withoutSecrets } from '../../fault.ts'
import { explainedCharactersMax } from '../../limits.ts'

/** Both sides of a comparison. */
export function describeMismatch(has: unknown, wants: string): string {
  return `the token has ${quote(has)}, the policy wants ${quote(wants)}`
}

/** A claim whose type no condition can take. */
export function describeWrongType(has: unknown, type: string): string {
  return `the token has ${quote(has)}, the condition needs ${type}`
}

/** JSON of at most `explainedCharactersMax` characters, so that both sides fit what the audit keeps. */
export function quote(value: unknown): string {
  const text = withoutSecrets(JSON.stringify(value) ?? 'nothing')
  if (text.length <= explainedCharactersMax) return text
  const characters = [...text]
  if (characters.length <= explainedCharactersMax) return text
  return `${characters.slice(0, explainedCharactersMax).join('')}…`
}

/** `exp` in seconds and `now` in milliseconds, both since 1970. */
export function describeExpiry(exp: number, now: number): string {
  return `exp ${exp} is ${timeOf(exp * 1_000)}, now it is ${timeOf(now)}`
}

/** A claim of a time (seconds) that lies ahead of `now` (milliseconds) by more than the issuer's clock skew. */
export function describeAhead(claim: string, value: number, now: number, skewSeconds: number): string {
  return `${claim} ${value} is ${timeOf(value * 1_000)}, now it is ${timeOf(now)}; it may be ${skewSeconds} s ahead`
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
