// Which requests have an unknown cost: the upstream had a response for them, and neither it nor a price says what that cost.
import { type SQL, sql } from 'drizzle-orm'
import type { UsageRow } from './record-schema.ts'

/** Their requests cost nothing: they only count, or concern a response that was paid for when it was made. */
export const freeEndpoints: readonly string[] = [
  '/messages/count_tokens',
  '/tokenize',
  '/detokenize',
  '/responses/{response}',
  '/responses/{response}/cancel',
  '/responses/{response}/input_items',
]

/** From this status on, a request failed, and costs nothing unless the upstream reports that it did. */
const failedFrom = 400

export function isCostUnknown({
  costNanodollars,
  status,
  endpoint,
}: Pick<UsageRow, 'costNanodollars' | 'status' | 'endpoint'>) {
  return costNanodollars === null && status < failedFrom && !freeEndpoints.includes(endpoint)
}

/** The same of a row of the ledger: 1 or 0. */
export const costUnknownText = `(cost_nanodollars is null and status < ${failedFrom}
  and endpoint not in (${freeEndpoints.map((endpoint) => `'${endpoint}'`).join(', ')}))`
export const costUnknown = sql.raw(costUnknownText) as SQL<number>
