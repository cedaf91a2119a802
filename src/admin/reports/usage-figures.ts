// How reports of usage show their sums.
import type { UsageTotals } from '../../../db/read/usage-report.ts'
import { nanodollarsPerDollar } from '../../limits.ts'

/** The cost is in dollars, of the requests whose cost is known. */
export function showTotals(totals: UsageTotals) {
  return {
    requests: totals.requests,
    prompt_tokens: totals.promptTokens,
    completion_tokens: totals.completionTokens,
    total_tokens: totals.totalTokens,
    cost: totals.costNanodollars / nanodollarsPerDollar,
    requests_without_cost: totals.unpriced,
  }
}
