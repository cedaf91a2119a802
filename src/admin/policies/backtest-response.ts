// What operations on past exchanges return, as shapes.

import { type } from '../../values/shape.ts'
import { archivedResponse, testResultResponse } from '../operation/responses.ts'

const time = type('string').configure({ format: 'date-time' })

/** An exchange, and what the saved policy and the edited one decide. Null: the record does not say. */
const example = type({
  request_id: 'string',
  at: time,
  subject: 'string',
  policy_name: 'string | null',
  before: 'string | null',
  after: 'string | null',
})

/** `is_limited`: there are older exchanges within the time that were not judged. */
export const backtestResponse = type({
  policy_id: 'string',
  policy_name: 'string',
  issuer_url: 'string',
  since: time,
  exchanges: 'number.integer',
  accepted_before: 'number.integer',
  accepted_after: 'number.integer',
  gained: 'number.integer',
  lost: 'number.integer',
  not_judged: 'number.integer',
  not_judged_because: type({
    because: "'nothing_recorded' | 'claim_not_recorded' | 'hashed'",
    'claim?': 'string',
    exchanges: 'number.integer',
  }).array(),
  examples: type({ 'gained?': example, 'lost?': example, 'not_judged?': example }),
  is_limited: 'boolean',
  'archived?': archivedResponse.array(),
}).configure({ title: 'Backtest' })

/** A test made from an exchange, and what the saved policy decides about it now. */
export const auditedTestResponse = type({
  policy_id: 'string',
  policy_name: 'string',
  test: type({ name: 'string', claims: 'object', expect: 'string' }),
  result: testResultResponse,
}).configure({ title: 'AuditedTest' })
