// The input of reports: filters, a time span, the number of rows, and where the next page starts.

import { offsetMax, reportRowsDefault, reportRowsMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { claimValueShape, referenceShape, timeShape } from '../../values/shapes.ts'
import type { Needs } from '../operation/context.ts'
import { findIssuerIdEver, findKeyIdEver, findOrganization, findPolicyIdEver } from '../operation/references.ts'

export const page = {
  'since?': timeShape,
  'until?': timeShape.configure({ says: 'Only rows before this time. ISO 8601' }),
  'limit?': `1 <= number.integer <= ${reportRowsMax}`,
  'before_id?': `1 <= number.integer <= ${offsetMax}`,
  'after_id?': type(`0 <= number.integer <= ${offsetMax}`).configure({
    says: 'Only rows that are newer than the one with this id',
  }),
} as const

export const keyShape = referenceShape.configure({
  says: 'Only this key, by name, id or hash; give a deleted key by id or hash',
})
export const issuerShape = referenceShape.configure({
  says: 'Only this issuer, by name or id; give a deleted issuer by id',
})
export const policyShape = referenceShape.configure({
  says: 'Only this policy, by name or id; give a deleted policy by id',
})
/** Filters of both the audit log and the ledger. */
export const traits = {
  'key?': keyShape,
  'policy?': policyShape,
  'issuer?': issuerShape,
  'subject?': claimValueShape.configure({ says: 'Only tokens of this subject' }),
} as const

/** The filters as columns. Deleted rows are named by their id. */
export async function traitsOf(
  { registry }: Needs<'registry'>,
  input: { organization?: string; key?: string; policy?: string; issuer?: string; subject?: string },
) {
  const { organization, key, policy, issuer, subject } = input
  return {
    keyId: key === undefined ? undefined : await findKeyIdEver(registry, key, organization),
    policyId: policy === undefined ? undefined : await findPolicyIdEver(registry, policy, organization),
    issuerId: issuer === undefined ? undefined : await findIssuerIdEver(registry, issuer, organization),
    subject,
  }
}

/** Without an organization, a report covers all of them; the audit log then includes exchanges that named an unknown policy. */
export function pageOf(
  { registry }: Needs<'registry'>,
  input: { organization?: string; since?: Date; until?: Date; limit?: number; before_id?: number; after_id?: number },
) {
  return {
    organizationId: input.organization === undefined ? undefined : findOrganization(registry, input.organization).id,
    since: input.since?.getTime(),
    until: input.until?.getTime(),
    beforeId: input.before_id,
    afterId: input.after_id,
    limit: input.limit ?? reportRowsDefault,
  }
}
