// What an edit makes of a policy, and what every policy must satisfy on its own (reference: Policy).
import type { Policy as PolicyRow } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import {
  type Condition,
  compileCondition,
  compileText,
  conditionEnvironment,
  describeConditionFault,
  isConditionFault,
} from '../../federation/condition/compile.ts'
import type { ConditionFault } from '../../federation/condition/permitted.ts'
import { policyBoundsBytesMax } from '../../limits.ts'
import { columnsOf, newColumnsOf } from '../kinds/fields.ts'
import { policyFields } from '../kinds/policy.ts'

type Expressions = { condition?: string | null; attribute_to?: string | null }

/** The columns that an input sets, without the issuer and the key. An expression is saved with the environment in which it was checked. */
export function policyColumns(input: Expressions): Partial<PolicyRow> {
  const { condition, attribute_to: attributeTo } = input
  const environmentOf = (source: string | null) => (source === null ? null : conditionEnvironment)
  return {
    ...columnsOf<PolicyRow>(policyFields, input),
    ...(condition === undefined ? {} : { conditionEnvironment: environmentOf(condition) }),
    ...(attributeTo === undefined ? {} : { attributeEnvironment: environmentOf(attributeTo) }),
  }
}

type NewColumns = Omit<PolicyRow, 'id' | 'organizationId' | 'issuerId' | 'keyId' | 'createdAt' | 'updatedAt'>

/** The same for a new policy: what the input lacks has its default. */
export function newPolicyColumns(input: Expressions): NewColumns {
  const { condition = null, attribute_to = null } = input
  const columns = { ...newColumnsOf<PolicyRow>(policyFields, input), ...policyColumns({ condition, attribute_to }) }
  return { ...columns, deletedAt: null, managedBy: null } as NewColumns
}

/** Checks what depends on the policy alone. @throws Fault `invalid` */
export function checkPolicyFields(row: PolicyRow): void {
  if (row.subject === null && row.condition === null)
    throw new Fault('invalid', 'A policy must restrict its subjects: set subject, condition or both', {
      hint: ' (--subject, --condition)',
    })
  checkExpression('condition', compileCondition, row.condition, row.conditionEnvironment)
  checkExpression('attribute_to', compileText, row.attributeTo, row.attributeEnvironment)
  const bounds = [...(row.allowedModels ?? []), ...(row.allowedPresets ?? [])]
  // Counted as the token contains them, where a character may take six bytes.
  if (Buffer.byteLength(JSON.stringify(bounds)) > policyBoundsBytesMax)
    throw new Fault(
      'invalid',
      `The models and presets of a policy are in every access token and must take at most ${policyBoundsBytesMax} bytes in total: use fewer or shorter patterns`,
    )
}

/** One that was saved in an earlier environment stays as it is. */
function checkExpression(
  field: 'condition' | 'attribute_to',
  compile: (source: string) => Condition | ConditionFault,
  source: string | null,
  environment: number | null,
): void {
  if (source === null || environment !== conditionEnvironment) return
  const compiled = compile(source)
  if (!isConditionFault(compiled)) return
  const what = field === 'condition' ? 'The condition' : field
  throw new Fault('invalid', `${what} cannot be saved: ${describeConditionFault(source, compiled)}`, { field })
}
