// What operations return of a policy: its row with the names of what it refers to, and why it is inactive.
import type { Policy as PolicyRow } from '../../../db/schema/schema.ts'
import { checkEligibility } from '../../federation/policy-binding.ts'
import { showFields } from '../kinds/fields.ts'
import { policyFields, type policyStates } from '../kinds/policy.ts'
import type { Needs } from '../operation/context.ts'
import { withLastUse } from '../operation/last-use-response.ts'
import type {
  changedPolicyResponse,
  policyDraftResponse,
  policyResponse,
  savedPolicyResponse,
} from '../operation/responses.ts'
import { compareRows, lintRow } from './policy-lint.ts'

/** Why the policy is inactive, as a reason of the audit log. */
function inactiveReasonOf({ registry, now }: Needs<'registry' | 'now'>, policy: PolicyRow): string | null {
  const organization = registry.organizations.get(policy.organizationId)
  const issuer = registry.issuers.get(policy.issuerId)
  const key = registry.keys.get(policy.keyId)
  if (organization === undefined || issuer === undefined || key === undefined)
    throw new Error(`Policy ${policy.id} names a row that the registry lacks`)
  return checkEligibility({ policy, organization, issuer, key }, now())?.refused ?? null
}

type State = { state: (typeof policyStates)[number]; inactive_reason: string | null }

export function stateOf(context: Needs<'registry' | 'now'>, policy: PolicyRow): State {
  const reason = inactiveReasonOf(context, policy)
  const state = reason === null ? 'enabled' : reason === 'policy_paused' ? 'paused' : 'inactive'
  return { state, inactive_reason: reason }
}

export function show(context: Needs<'registry' | 'now'>, row: PolicyRow): typeof policyResponse.infer {
  const { registry } = context
  const issuer = registry.issuers.get(row.issuerId)
  const key = registry.keys.get(row.keyId)
  const derived = {
    issuer_name: issuer?.name ?? '',
    issuer_url: issuer?.issuerUrl ?? '',
    issuer_deleted: issuer?.deletedAt !== null,
    ...stateOf(context, row),
    key_name: key?.name ?? '',
    role: key?.role ?? null,
    key_disabled: key?.disabled === true,
    key_deleted: key?.deletedAt !== null,
  }
  return showFields(policyFields, row, derived) as typeof policyResponse.infer
}

/** A policy with its last use. */
export async function showUsed(
  context: Needs<'registry' | 'lastUses' | 'now'>,
  row: PolicyRow,
): Promise<typeof policyResponse.infer> {
  const shown = show(context, row)
  const [used] = await withLastUse(context, [shown])
  return used ?? shown
}

/** A saved policy, with what the linter finds. */
export async function showSaved(
  context: Needs<'registry' | 'now'>,
  row: PolicyRow,
): Promise<typeof savedPolicyResponse.infer> {
  return { ...show(context, row), findings: await lintRow(context, row) }
}

/** A draft has neither an id nor times. */
export async function showDraft(
  context: Needs<'registry' | 'now'>,
  row: PolicyRow,
): Promise<typeof policyDraftResponse.infer> {
  const { id: _id, created_at: _created, updated_at: _updated, ...draft } = await showSaved(context, row)
  return { ...draft, dry_run: true }
}

/** What a change would save, and what it would change. */
export async function showEdit(
  context: Needs<'registry' | 'now'>,
  before: PolicyRow,
  after: PolicyRow,
): Promise<typeof changedPolicyResponse.infer> {
  return { ...(await showSaved(context, after)), dry_run: true, difference: await compareRows(context, before, after) }
}
