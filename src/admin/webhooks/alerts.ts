// The admin operation that lists alerts: what happened, and how far its deliveries are.
import { alertTypes } from '../../../db/schema/alert-schema.ts'
import { type ListedAlert, listAlerts } from '../../../db/tables/alerts.ts'
import { reportRowsDefault } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { findOrganization, organizationInput, timeOf } from '../operation/references.ts'
import { page } from '../reports/report-page.ts'

const { 'since?': since, 'until?': until, 'limit?': limit } = page
const listInput = type({
  '+': 'reject',
  ...organizationInput,
  'type?': type.enumerated(...alertTypes),
  'since?': since,
  'until?': until,
  'limit?': limit,
})
const count = 'number.integer'

export const alertResponse = type({
  id: type('string').configure({ says: 'The `webhook-id` of its event' }),
  at: 'string',
  type: type.enumerated(...alertTypes),
  data: type('object').configure({ says: 'As in its event; see `latchkey help alerts`' }),
  ended_at: type('string | null').configure({ says: 'Of a finding: when it was gone' }),
  deliveries: { delivered: count, waiting: count, given_up: count },
}).configure({ title: 'Alert' })

export const alertOperations = { 'alerts.list': operation(listInput, listAll) }

async function listAll(context: Needs<'reader' | 'registry'>, input: typeof listInput.infer) {
  const { id: organizationId } = findOrganization(context.registry, input.organization)
  const rows = await listAlerts(context.reader, {
    ...{ organizationId, type: input.type, limit: input.limit ?? reportRowsDefault },
    ...{ since: input.since?.getTime(), until: input.until?.getTime() },
  })
  return { data: rows.map(showAlert) }
}

function showAlert({ id, at, type, data, endedAt, ...deliveries }: ListedAlert) {
  const { delivered, waiting, givenUp: given_up } = deliveries
  return { id, at: timeOf(at), type, data, ended_at: timeOf(endedAt), deliveries: { delivered, waiting, given_up } }
}
