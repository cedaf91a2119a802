// What reports take: what to narrow them by, a time to begin at, how many rows, and where the next page begins.

import { offsetMax, reportRowsDefault, reportRowsMax } from '../limits.ts'
import { claimValueShape, referenceShape, timeShape } from '../values/shapes.ts'
import type { AdminContext } from './context.ts'
import { findIssuerIdEver, findKeyIdEver, findOrganization, findPolicyIdEver } from './references.ts'

export const page = {
  'since?': timeShape,
  'limit?': `1 <= number.integer <= ${reportRowsMax}`,
  'before_id?': `1 <= number.integer <= ${offsetMax}`,
} as const

export const keyShape = referenceShape.configure({
  says: 'Only of this key, by name, id or hash; a deleted one by id or hash',
})
export const issuerShape = referenceShape.configure({ says: 'Only of this issuer, by name or id; a deleted one by id' })
/** What narrows both the audit and the ledger. */
export const traits = {
  'key?': keyShape,
  'policy?': referenceShape.configure({ says: 'Only under this policy, by name or id; a deleted one by id' }),
  'issuer?': issuerShape,
  'subject?': claimValueShape.configure({ says: 'Only with tokens of this subject' }),
} as const

/** The same as columns; what is deleted by now is named by its id. */
export function traitsOf(
  { registry }: AdminContext,
  input: { organization?: string; key?: string; policy?: string; issuer?: string; subject?: string },
) {
  const { organization, key, policy, issuer, subject } = input
  return {
    keyId: key === undefined ? undefined : findKeyIdEver(registry, key, organization),
    policyId: policy === undefined ? undefined : findPolicyIdEver(registry, policy, organization),
    issuerId: issuer === undefined ? undefined : findIssuerIdEver(registry, issuer, organization),
    subject,
  }
}

/** Without an organization a report covers all of them, and for the audit also exchanges that named no policy of ours. */
export function pageOf(
  { registry }: AdminContext,
  input: { organization?: string; since?: Date; limit?: number; before_id?: number },
) {
  return {
    organizationId: input.organization === undefined ? undefined : findOrganization(registry, input.organization).id,
    since: input.since?.getTime(),
    beforeId: input.before_id,
    limit: input.limit ?? reportRowsDefault,
  }
}
