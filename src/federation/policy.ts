// What a federation policy demands (interface §2.2). A policy is compiled once; save and exchange use the same compiled value.
import type { Policy as PolicyRow } from '../../db/schema.ts'
import { isStringArray, type SubjectToken } from './claims.ts'
import {
  type Condition,
  checkCondition,
  compileCondition,
  conditionEnvironment,
  isConditionFault,
} from './condition.ts'
import { explainGithubSubject } from './github-subject.ts'
import { describeMismatch } from './mismatch.ts'
import { type Refusal, refuse } from './refusal.ts'

/** An immutable policy. A change of the row makes a new value, so that identity tells whether anything changed. */
export type Policy = Readonly<PolicyRow> & {
  /** Undefined where the policy has none; a string tells why one that was saved cannot be evaluated. */
  readonly compiledCondition: Condition | string | undefined
}

export function compilePolicy(row: PolicyRow): Policy {
  return Object.freeze({ ...row, compiledCondition: compiledConditionOf(row) })
}

/** A condition never changes its meaning behind its admin's back: one of another environment waits to be saved again. */
function compiledConditionOf({ condition, conditionEnvironment: savedUnder }: PolicyRow): Policy['compiledCondition'] {
  if (condition === null) return undefined
  if (savedUnder !== conditionEnvironment) return `condition of environment ${savedUnder}: save it again`
  const compiled = compileCondition(condition)
  return isConditionFault(compiled) ? `condition: ${compiled.message}` : compiled
}

type Rule = (policy: Policy, token: SubjectToken) => Refusal | undefined

/** What a policy demands, in order; each by itself, so that an admin can be told everything that a token lacks. */
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
  scopes: ({ requiredScope }, { payload }) => checkScopes(requiredScope, payload.scopes),
  token_type: ({ requiredTokenType }, { payload }) => checkTokenType(requiredTokenType, payload.token_type),
  condition: ({ compiledCondition }, token) => {
    if (typeof compiledCondition === 'string') return refuse('policy_unsupported', compiledCondition)
    return compiledCondition === undefined ? undefined : checkCondition(compiledCondition, token)
  },
}

/**
 * Decides whether a verified token satisfies the policy: exact subject and audience, both claim checks, then the condition. A condition
 * that cannot be evaluated accepts nothing, rather than being ignored.
 */
export function checkRules(policy: Policy, token: SubjectToken): Refusal | undefined {
  return (
    rules.subject(policy, token) ??
    rules.audience(policy, token) ??
    rules.scopes(policy, token) ??
    rules.token_type(policy, token) ??
    rules.condition(policy, token)
  )
}

/** Decisions §3: `scopes` must be an array of strings that contains the value; the `scope` string is not looked at. */
function checkScopes(required: string | null, scopes: unknown): Refusal | undefined {
  if (required === null) return undefined
  if (isStringArray(scopes) && scopes.includes(required)) return undefined
  const detail = describeMismatch(scopes, required)
  if (scopes === undefined) return refuse('scopes_missing', detail)
  if (!isStringArray(scopes)) return refuse('scopes_wrong_type', `${detail} in an array of strings`)
  return refuse('scopes_mismatch', detail)
}

/** Decisions §3: the `token_type` claim, not the header's `typ`, must be a string equal to the value. */
function checkTokenType(required: string | null, tokenType: unknown): Refusal | undefined {
  if (required === null) return undefined
  if (tokenType === required) return undefined
  const detail = describeMismatch(tokenType, required)
  if (tokenType === undefined) return refuse('token_type_missing', detail)
  return refuse(typeof tokenType === 'string' ? 'token_type_mismatch' : 'token_type_wrong_type', detail)
}
