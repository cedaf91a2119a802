// What an edit makes of a policy, and what every policy must satisfy on its own (reference: Policy).
import type { Policy as PolicyRow } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import {
  compileCondition,
  conditionEnvironment,
  describeConditionFault,
  isConditionFault,
} from '../../federation/condition/compile.ts'
import { policyBoundsBytesMax } from '../../limits.ts'
import type { policyChange } from './policy-input.ts'

/** The fields of an edit that decide which tokens pass. */
export type RuleChange = Pick<
  typeof policyChange.infer,
  'audience' | 'subject' | 'condition' | 'required_scope' | 'required_token_type' | 'replay_protection'
>

/** The policy with other rules. A field that the edit lacks stays. */
export function withRules(policy: Readonly<PolicyRow>, input: RuleChange): PolicyRow {
  return {
    ...policy,
    audience: input.audience ?? policy.audience,
    subject: input.subject === undefined ? policy.subject : input.subject,
    ...(input.condition === undefined ? {} : conditionColumns(input.condition)),
    requiredScope: input.required_scope === undefined ? policy.requiredScope : input.required_scope,
    requiredTokenType: input.required_token_type === undefined ? policy.requiredTokenType : input.required_token_type,
    replayProtection: input.replay_protection ?? policy.replayProtection,
  }
}

/** A condition is saved with the environment in which it was checked. */
export function conditionColumns(condition: string | null): Pick<PolicyRow, 'condition' | 'conditionEnvironment'> {
  return { condition, conditionEnvironment: condition === null ? null : conditionEnvironment }
}

/** Checks what depends on the policy alone. @throws Fault `invalid` */
export function checkPolicyFields(row: PolicyRow): void {
  if (row.subject === null && row.condition === null)
    throw new Fault('invalid', 'A policy must restrict its subjects: set subject, condition or both', {
      hint: ' (--subject, --condition)',
    })
  if (row.condition !== null && row.conditionEnvironment === conditionEnvironment) {
    const compiled = compileCondition(row.condition)
    if (isConditionFault(compiled))
      throw new Fault('invalid', `The condition cannot be saved: ${describeConditionFault(row.condition, compiled)}`)
  }
  const bounds = [...(row.allowedModels ?? []), ...(row.allowedPresets ?? [])]
  // Counted as the token contains them, where a character may take six bytes.
  if (Buffer.byteLength(JSON.stringify(bounds)) > policyBoundsBytesMax)
    throw new Fault(
      'invalid',
      `The models and presets of a policy are in every access token and must take at most ${policyBoundsBytesMax} bytes in total: use fewer or shorter patterns`,
    )
}
