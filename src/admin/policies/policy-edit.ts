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
import { columnsOf, newColumnsOf } from '../kinds/fields.ts'
import { policyFields } from '../kinds/policy.ts'

/** The columns that an input sets, without the issuer and the key. A condition is saved with the environment in which it was checked. */
export function policyColumns(input: { condition?: string | null }): Partial<PolicyRow> {
  const { condition } = input
  const environment = condition === null ? null : conditionEnvironment
  const columns = columnsOf<PolicyRow>(policyFields, input)
  return condition === undefined ? columns : { ...columns, conditionEnvironment: environment }
}

type NewColumns = Omit<PolicyRow, 'id' | 'organizationId' | 'issuerId' | 'keyId' | 'createdAt' | 'updatedAt'>

/** The same for a new policy: what the input lacks has its default. */
export function newPolicyColumns(input: { condition?: string | null }): NewColumns {
  const { condition = null } = input
  const columns = { ...newColumnsOf<PolicyRow>(policyFields, input), ...policyColumns({ condition }) }
  return { ...columns, deletedAt: null, managedBy: null } as NewColumns
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
