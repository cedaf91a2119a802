// How many exchanges were issued and refused, and why, in each of the last hours or days.
import { hourMilliseconds } from '../../../db/tables/exchange-counts.ts'
import { Fault } from '../../fault.ts'
import { type } from '../../values/shape.ts'
import type { Needs } from '../operation/context.ts'
import type { Outcomes } from '../operation/exchange-counts.ts'
import { findOrganization, findPolicyIdEver, organizationInput, timeOf } from '../operation/references.ts'
import type { exchangeCountsResponse } from '../operation/responses.ts'
import { policyShape } from './report-page.ts'

export const countsInput = type({
  '+': 'reject',
  ...organizationInput,
  'per?': type.enumerated('hour', 'day').configure({ says: 'The last 24 hours, or the last 30 days (UTC)' }),
  'policy?': policyShape,
})

const [hoursOfDay, daysShown] = [24, 30]

/** A policy has hours only. */
export async function countExchanges(
  context: Needs<'registry' | 'exchangeCounts' | 'now'>,
  { organization, per = 'hour', policy }: typeof countsInput.infer,
): Promise<typeof exchangeCountsResponse.infer> {
  const { registry, exchangeCounts, now } = context
  if (policy !== undefined && per === 'day')
    throw new Fault('invalid', 'The exchanges of a policy are counted per hour')
  const { id: organizationId } = findOrganization(registry, organization)
  const policyId = policy === undefined ? undefined : await findPolicyIdEver(registry, policy, organization)
  const ofHour = (hour: number) =>
    policyId === undefined
      ? exchangeCounts.ofOrganization(hour, organizationId)
      : exchangeCounts.ofPolicy(hour, policyId)
  const width = per === 'hour' ? 1 : hoursOfDay
  const last = Math.floor(now() / hourMilliseconds / width)
  const first = last - (per === 'hour' ? hoursOfDay : daysShown) + 1
  const since = first * width * hourMilliseconds
  const countedSince = await exchangeCounts.countSince(since)
  const data = Array.from({ length: last - first + 1 }, (_, index) => {
    const hour = (first + index) * width
    const reasons = addUp(Array.from({ length: width }, (_, more) => ofHour(hour + more)))
    const issued = reasons.get(null) ?? 0
    reasons.delete(null)
    const refused = [...reasons.values()].reduce((sum, count) => sum + count, 0)
    return { at: timeOf(hour * hourMilliseconds), issued, refused, reasons: Object.fromEntries(reasons) }
  })
  return { per, since: timeOf(since), counted_since: timeOf(Math.max(countedSince, since)), data }
}

function addUp(all: readonly Outcomes[]): Map<string | null, number> {
  const sums = new Map<string | null, number>()
  for (const outcomes of all) for (const [reason, count] of outcomes) sums.set(reason, (sums.get(reason) ?? 0) + count)
  return sums
}
