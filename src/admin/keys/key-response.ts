// What operations return of an API key: its row, with what it has spent.
import type { ApiKeyWithNames } from '../../../db/tables/api-keys.ts'
import { keyStateOf } from '../../keys/api-key.ts'
import { remainingOf } from '../../keys/spending.ts'
import { nanodollarsPerDollar } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { responseOf, showFields } from '../kinds/fields.ts'
import { keyFields } from '../kinds/key.ts'
import type { Needs } from '../operation/context.ts'

const keyResponse = type(responseOf(keyFields))

export function showApiKey(
  { key, workspaceName, userName }: ApiKeyWithNames,
  { spending, now }: Needs<'spending' | 'now'>,
): typeof keyResponse.infer {
  const spent = spending.of(key.id, now())
  const dollars = (nanodollars: number) => nanodollars / nanodollarsPerDollar
  const remaining = remainingOf(key, spent)
  const derived = {
    hash: key.hash,
    previous_until: key.previousUntil > now() ? new Date(key.previousUntil).toISOString() : null,
    state: keyStateOf(key, now()),
    workspace: workspaceName,
    owner: userName,
    limit_remaining: remaining === null ? null : dollars(remaining),
    usage: dollars(spent.ever),
    usage_daily: dollars(spent.daily),
    usage_weekly: dollars(spent.weekly),
    usage_monthly: dollars(spent.monthly),
  }
  return showFields(keyFields, key, derived) as typeof keyResponse.infer
}
