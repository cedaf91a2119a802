// What operations return of an API key: its row, with what it has spent.
import type { ApiKeyWithNames } from '../../../db/tables/api-keys.ts'
import { keyStateOf } from '../../keys/api-key.ts'
import { remainingOf } from '../../keys/spending.ts'
import { nanodollarsPerDollar } from '../../limits.ts'
import type { AdminContext } from '../operation/context.ts'
import { timeOf } from '../operation/references.ts'

export function showApiKey(
  { key, workspaceName, ownerName }: ApiKeyWithNames,
  { spending, now }: Pick<AdminContext, 'spending' | 'now'>,
) {
  const spent = spending.of(key.id, now())
  const dollars = (nanodollars: number) => nanodollars / nanodollarsPerDollar
  const dollarsOrNull = (nanodollars: number | null) => (nanodollars === null ? null : dollars(nanodollars))
  return {
    id: key.id,
    hash: key.hash,
    name: key.name,
    label: key.label,
    kind: key.kind,
    state: keyStateOf(key, now()),
    disabled: key.disabled,
    organization_id: key.organizationId,
    workspace_id: key.workspaceId,
    workspace: workspaceName,
    owner_id: key.ownerId,
    owner: ownerName,
    expires_at: timeOf(key.expiresAt),
    limit: dollarsOrNull(key.limitNanodollars),
    limit_reset: key.limitReset,
    limit_remaining: dollarsOrNull(remainingOf(key, spent)),
    usage: dollars(spent.ever),
    usage_daily: dollars(spent.daily),
    usage_weekly: dollars(spent.weekly),
    usage_monthly: dollars(spent.monthly),
    requests_per_minute: key.requestsPerMinute,
    tokens_per_minute: key.tokensPerMinute,
    allowed_models: key.allowedModels,
    allowed_presets: key.allowedPresets,
    managed_by: key.managedBy,
    created_at: timeOf(key.createdAt),
    updated_at: timeOf(key.updatedAt),
  }
}
