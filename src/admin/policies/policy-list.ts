// Lists policies: filters, a page of them, and how many exchanges each had in the last day.
import { hourMilliseconds } from '../../../db/exchange-counts.ts'
import { filterInSlices, mapInSlices } from '../../../db/pace.ts'
import { mayHave } from '../../../db/packed-rows.ts'
import { type } from '../../values/shape.ts'
import type { AdminContext } from '../operation/context.ts'
import { totalsOfOutcomes } from '../operation/exchange-counts.ts'
import { unusedInput } from '../operation/last-use-response.ts'
import { containsText, listPage, mayContainText, showPage } from '../operation/list-page.ts'
import { findIssuerIdEver, findKeyIdEver, findOrganization, organizationInput } from '../operation/references.ts'
import { type policyResponse, policyStates } from '../operation/responses.ts'
import { issuerShape, keyShape } from '../reports/report-page.ts'
import { show } from './policy-response.ts'

export const policyListInput = type({
  '+': 'reject',
  ...organizationInput,
  'key?': keyShape,
  'issuer?': issuerShape,
  ...unusedInput,
  ...listPage,
  'counts?': type('boolean').configure({ says: 'With the exchanges of the last 24 hours' }),
  'state?': type
    .enumerated(...policyStates)
    .configure({ says: 'Only policies in this state; `inactive_reason` explains the state' }),
})

export async function listPolicies(context: AdminContext, input: typeof policyListInput.infer) {
  const { registry } = context
  const { organization, key, issuer, state, contains } = input
  const { id } = findOrganization(registry, organization)
  const keyId = key === undefined ? undefined : await findKeyIdEver(registry, key, organization)
  const issuerId = issuer === undefined ? undefined : await findIssuerIdEver(registry, issuer, organization)
  const [mayBeTheirs, mayFit] = [mayHave(keyId ?? issuerId ?? id), mayContainText(contains)]
  const fits = containsText(contains)
  const rows = await filterInSlices(
    registry.policies.valuesWith((packed) => mayBeTheirs(packed) && mayFit(packed)),
    (row) =>
      row.organizationId === id &&
      row.deletedAt === null &&
      (keyId ?? row.keyId) === row.keyId &&
      (issuerId ?? row.issuerId) === row.issuerId &&
      fits(row.name) &&
      (state === undefined || show(context, row).state === state),
  )
  const listed = await showPage(context, rows, input, (some) => mapInSlices(some, (row) => show(context, row)))
  return input.counts === true ? { ...listed, data: await withCounts(context, listed.data) } : listed
}

const hoursOfDay = 24

/** The same policies with how many tokens each issued and refused in the last 24 hours, counted by whole hours. */
async function withCounts<Shown extends typeof policyResponse.infer>(
  { exchangeCounts, now }: AdminContext,
  policies: readonly Shown[],
): Promise<Shown[]> {
  const last = Math.floor(now() / hourMilliseconds)
  await exchangeCounts.countSince((last - hoursOfDay + 1) * hourMilliseconds)
  const hours = Array.from({ length: hoursOfDay }, (_, index) => last - index)
  return policies.map((policy) => {
    const counts = hours.map((hour) => totalsOfOutcomes(exchangeCounts.ofPolicy(hour, policy.id)))
    const exchanges = {
      issued: counts.reduce((sum, { issued }) => sum + issued, 0),
      refused: counts.reduce((sum, { refused }) => sum + refused, 0),
    }
    return { ...policy, exchanges_24h: exchanges }
  })
}
