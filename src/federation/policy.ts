// The rules of a federation policy (reference: Policy). Saving and exchanging compile conditions with the same
// function, so they cannot disagree.
import type { Policy as PolicyRow } from '../../db/schema/schema.ts'
import { deferCache } from '../values/deferred-cache.ts'
import { isStringArray } from '../values/json-members.ts'
import {
  type Condition,
  checkCondition,
  compileCondition,
  conditionEnvironment,
  isConditionFault,
} from './condition/compile.ts'
import type { ConditionFault } from './condition/permitted.ts'
import type { SubjectToken } from './subject-token/claims.ts'
import { explainGithubSubject } from './subject-token/github-subject.ts'
import { type Refusal, refuse } from './subject-token/refusal.ts'
import { describeMismatch, describeWrongType } from './subject-token/refusal-detail.ts'

/** An immutable policy. Changing the row creates a new value, so identity shows whether anything changed. */
export type Policy = Readonly<PolicyRow>

/**
 * Returns the condition of a policy, compiled at first use, undefined if it has none, or a string with the reason why
 * it cannot be evaluated. A condition never changes its meaning without its admin: one from another environment must be
 * saved again.
 */
export function conditionOf({ condition, conditionEnvironment: savedUnder }: Policy): Condition | string | undefined {
  if (condition === null) return undefined
  if (savedUnder !== conditionEnvironment) return `condition of environment ${savedUnder}: save it again`
  const compiled = compileOnce(condition)
  return isConditionFault(compiled) ? `condition: ${compiled.message}` : compiled
}

/** The most recently used conditions by source, because policies often share one. Each takes a few kilobytes. */
const compiledConditions = deferCache<Condition>(2_000)

function compileOnce(source: string): Condition | ConditionFault {
  const known = compiledConditions().get(source)
  if (known !== undefined) return known
  const compiled = compileCondition(source)
  if (!isConditionFault(compiled)) compiledConditions().set(source, compiled)
  return compiled
}

type Rule = (policy: Policy, token: SubjectToken) => Refusal | undefined

/** The rules of a policy for a verified token, one per step. */
export const rules: Readonly<Record<'subject' | 'audience' | 'scopes' | 'token_type' | 'condition', Rule>> = {
  subject: ({ subject }, token) => {
    if (subject === null || token.subject === subject) return undefined
    const explained = explainGithubSubject(token.subject, subject)
    const detail = describeMismatch(token.subject, subject)
    return refuse('subject_mismatch', explained === undefined ? detail : `${detail}; ${explained}`)
  },
  audience: ({ audience }, token) =>
    token.audience.includes(audience)
      ? undefined
      : refuse(
          'audience_mismatch',
          describeMismatch(token.audience.length === 1 ? token.audience[0] : token.audience, audience),
        ),
  scopes: checkScopes,
  token_type: checkTokenType,
  // A condition that cannot be evaluated accepts nothing.
  condition: (policy, token) => {
    const condition = conditionOf(policy)
    if (typeof condition === 'string') return refuse('policy_unsupported', condition)
    return condition === undefined ? undefined : checkCondition(condition, token)
  },
}

/**
 * `scopes` must be an array of strings that contains the required one; a `scope` string is ignored (reference: Claim
 * checks). A condition also reads `scopes`, so with a condition they must have that type if present (reference:
 * Condition).
 */
function checkScopes({ requiredScope, condition }: Policy, { payload: { scopes } }: SubjectToken): Refusal | undefined {
  if (requiredScope === null) {
    if (condition === null || scopes === undefined || isStringArray(scopes)) return undefined
    return refuse('scopes_wrong_type', describeWrongType(scopes, 'an array of strings'))
  }
  if (isStringArray(scopes) && scopes.includes(requiredScope)) return undefined
  const detail = describeMismatch(scopes, requiredScope)
  if (scopes === undefined) return refuse('scopes_missing', detail)
  if (!isStringArray(scopes)) return refuse('scopes_wrong_type', `${detail} in an array of strings`)
  return refuse('scopes_mismatch', detail)
}

/**
 * The `token_type` claim, not the header's `typ`, must be the required string. With a condition, it must be a string if
 * present (reference: Claim checks).
 */
function checkTokenType(policy: Policy, { payload: { token_type: tokenType } }: SubjectToken): Refusal | undefined {
  const { requiredTokenType, condition } = policy
  if (requiredTokenType === null) {
    if (condition === null || tokenType === undefined || typeof tokenType === 'string') return undefined
    return refuse('token_type_wrong_type', describeWrongType(tokenType, 'a string'))
  }
  if (tokenType === requiredTokenType) return undefined
  const detail = describeMismatch(tokenType, requiredTokenType)
  if (tokenType === undefined) return refuse('token_type_missing', detail)
  return refuse(typeof tokenType === 'string' ? 'token_type_mismatch' : 'token_type_wrong_type', detail)
}
