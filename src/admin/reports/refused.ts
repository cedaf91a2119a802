// The admin operation that shows which inference requests the responding node refused before any server got them.
import { Fault } from '../../fault.ts'
import { type } from '../../values/shape.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { findKeyIdEver, findOrganization, organizationInput, timeOf } from '../operation/references.ts'
import { keyShape } from './report-page.ts'
import { createRowNames } from './row-names.ts'

const text = 'string | null'
const time = type('string').configure({ format: 'date-time' })

/** `subject` is whose limit refused the latest one; `requests` counts those of the last 24 hours; `samples` has the latest of them, at most one for each second. */
export const refusedResponse = type({
  since: time,
  data: type({
    key_id: 'string',
    key_name: text,
    status: 'number.integer',
    reason: 'string',
    message: 'string',
    subject: type({ kind: "'key' | 'policy' | 'preset' | 'budget'", id: 'string' }).or('null'),
    requests: 'number.integer',
    last_at: time,
    samples: type({ at: time, request_id: 'string', model: text, policy_id: text, policy_name: text }).array(),
  }).array(),
}).configure({ title: 'RefusedRequests' })

const refusedInput = type({ '+': 'reject', ...organizationInput, 'key?': keyShape })

export const refusedOperations = { 'usage.refused': operation(refusedInput, listRefused) }

/** @throws Fault `conflict` in a process that does not serve */
async function listRefused(
  { refusals, registry, now }: Needs<'refusals' | 'registry' | 'now'>,
  { organization, key }: typeof refusedInput.infer,
): Promise<typeof refusedResponse.infer> {
  if (refusals === undefined) throw new Fault('conflict', 'No server runs on this database; start it: latchkey serve')
  const organizationId = organization === undefined ? undefined : findOrganization(registry, organization).id
  const keyId = key === undefined ? undefined : await findKeyIdEver(registry, key, organization)
  const names = createRowNames(registry)
  const found = refusals.list(organizationId, now()).filter((group) => (keyId ?? group.keyId) === group.keyId)
  const data = found.map(async ({ keyId, status, reason, message, subject = null, requests, lastAt, samples }) => ({
    ...{ key_id: keyId, key_name: (await names.key(keyId))?.name ?? null },
    ...{ status, reason, message, subject, requests, last_at: timeOf(lastAt) },
    samples: await Promise.all(
      samples.map(async ({ at, requestId, model, policyId }) => ({
        ...{ at: timeOf(at), request_id: requestId, model, policy_id: policyId },
        policy_name: (await names.policy(policyId))?.name ?? null,
      })),
    ),
  }))
  return { since: timeOf(refusals.since), data: await Promise.all(data) }
}
