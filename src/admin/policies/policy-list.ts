// Lists policies: filters, a page of them, and how many exchanges each had in the last day.

import { filterInSlices, mapInSlices } from '../../../db/read/pace.ts'
import { hourMilliseconds } from '../../../db/tables/exchange-counts.ts'
import type { Policy } from '../../federation/policy.ts'
import { toPolicy, valueOfPolicy } from '../../registry/trust-rows.ts'
import { type } from '../../values/shape.ts'
import { unusedInput } from '../../values/shapes.ts'
import { policyStates } from '../kinds/policy.ts'
import type { Needs } from '../operation/context.ts'
import { totalsOfOutcomes } from '../operation/exchange-counts.ts'
import { containsText, listPage, showNext, showPage } from '../operation/list-page.ts'
import { findIssuerIdEver, findKeyIdEver, findOrganization, organizationInput } from '../operation/references.ts'
import type { policyResponse } from '../operation/responses.ts'
import { issuerShape, keyShape } from '../reports/report-page.ts'
import { show, stateOf } from './policy-response.ts'

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

export async function listPolicies(
  context: Needs<'registry' | 'lastUses' | 'exchangeCounts' | 'now'>,
  input: typeof policyListInput.infer,
) {
  const { registry } = context
  const { organization, key, issuer, state, contains } = input
  const { id } = findOrganization(registry, organization)
  const keyId = key === undefined ? undefined : await findKeyIdEver(registry, key, organization)
  const issuerId = issuer === undefined ? undefined : await findIssuerIdEver(registry, issuer, organization)
  const { policies } = registry
  const fits = containsText(contains)
  const isListed = (policyId: string) => {
    const held = policies.held(policyId)
    if (held === undefined) return false
    const read = <Field extends keyof Policy>(field: Field) => valueOfPolicy(held, field)
    return (
      read('organizationId') === id &&
      (keyId === undefined || read('keyId') === keyId) &&
      (issuerId === undefined || read('issuerId') === issuerId) &&
      (contains === undefined || fits(read('name'))) &&
      (state === undefined || stateOf(context, toPolicy(held)).state === state)
    )
  }
  const order = policies.keysNow()
  const showThem = (some: readonly string[]) => showSome(context, some)
  const createdAt = (policyId: string) => {
    const held = policies.held(policyId)
    return held && valueOfPolicy(held, 'createdAt')
  }
  const listed =
    input.after === undefined
      ? await showPage(context, await filterInSlices(order, isListed), input, { show: showThem, createdAt })
      : await showNext(context, order, isListed, input, showThem)
  return input.counts === true ? { ...listed, data: await withCounts(context, listed.data) } : listed
}

/** Policies that were deleted while others were read are left out. */
async function showSome(
  context: Needs<'registry' | 'now'>,
  ids: readonly string[],
): Promise<(typeof policyResponse.infer)[]> {
  const shown = await mapInSlices(ids, (id) => {
    const row = context.registry.policies.peek(id)
    return row && show(context, row)
  })
  return shown.filter((each) => each !== undefined)
}

const hoursOfDay = 24

/** The same policies with how many tokens each issued and refused in the last 24 hours, counted by whole hours. */
async function withCounts<Shown extends typeof policyResponse.infer>(
  { exchangeCounts, now }: Needs<'exchangeCounts' | 'now'>,
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
