// The activation of a condition: the five variables that it reads from a verified token (reference: Condition), bounded
// so that no token makes an accepted condition slow.
import { conditionClaimsDepthMax, conditionCollectionItemsMax, conditionStringCharactersMax } from '../../limits.ts'
import type { JsonObject } from '../../tokens/jwt-text.ts'
import { isStringArray } from '../../values/json-members.ts'
import type { SubjectToken } from '../subject-token/claims.ts'
import { type Refusal, refuse } from '../subject-token/refusal.ts'

export type ConditionView = {
  subject: string
  audience: string[]
  scopes: string[]
  token_type: string
  claims: Map<string, unknown>
}

/**
 * Builds the activation. A missing `scopes` is an empty list and a missing `token_type` an empty string; any other type
 * refuses the token (reference: Condition).
 */
export function activationOf(
  { subject, audience, payload }: SubjectToken,
  usesClaims: boolean,
): ConditionView | Refusal {
  const { scopes = [], token_type = '' } = payload
  if (!isStringArray(scopes)) return refuse('scopes_wrong_type')
  if (typeof token_type !== 'string') return refuse('token_type_wrong_type')
  if (audience.length > conditionCollectionItemsMax) return refuse('claims_too_large', 'aud: too many values')
  if (token_type.length > conditionStringCharactersMax) return refuse('claims_too_large', 'token_type')
  if (!usesClaims) return { subject, audience, scopes, token_type, claims: new Map() }
  const excess = activationExcess(payload)
  if (excess !== undefined) return refuse('claims_too_large', excess)
  return { subject, audience, scopes, token_type, claims: mapOf(payload) }
}

/** Returns the first limit of conditions that the claims exceed. */
export function activationExcess(payload: JsonObject): string | undefined {
  return findExcess(payload, 1)
}

/** Returns the first limit that a value exceeds. */
function findExcess(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return value.length > conditionStringCharactersMax ? 'a string is too long' : undefined
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > conditionClaimsDepthMax) return 'too deeply nested'
  const names = Object.keys(value)
  if (names.length > conditionCollectionItemsMax) return 'too many items'
  for (const name of names) {
    const excess = findExcess(name, depth) ?? findExcess((value as JsonObject)[name], depth + 1)
    if (excess !== undefined) return excess
  }
  return undefined
}

/** Uses maps instead of objects, because a claim can be named `constructor`. */
function mapOf(object: object): Map<string, unknown> {
  const map = new Map<string, unknown>()
  for (const [name, value] of Object.entries(object)) map.set(name, celValueOf(value))
  return map
}

function celValueOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(celValueOf)
  return typeof value === 'object' && value !== null ? mapOf(value) : value
}
