// The responses of the operations on configuration documents, as shapes for the OpenAPI document.

import { type } from '../../values/shape.ts'
import { kinds } from '../kinds/kinds.ts'
import { findingResponse } from '../operation/responses.ts'
import { actions } from './plan.ts'

const change = type({
  'owner?': type('string').configure({ says: 'Of the document, where several are planned together' }),
  kind: type.enumerated(...kinds),
  name: 'string',
  action: type.enumerated(...actions),
  'managed_by?': 'string',
  fields: type({ field: 'string', 'before?': 'unknown', 'after?': 'unknown' }).array(),
  'policies_affected?': 'string[]',
}).configure({ title: 'ConfigChange' })
const count = 'number.integer'
const document = {
  owner: 'string | null',
  'owner_locks?': { before: 'boolean', after: 'boolean' },
} as const
const planFields = {
  ...document,
  'documents?': type(document)
    .array()
    .configure({ says: 'In place of owner, which is then null, where several are planned together' }),
  fingerprint: 'string',
  counts: type({ create: count, update: count, delete: count, adopt: count, conflict: count }),
  changes: change.array(),
  findings: type({ policy: 'string', findings: findingResponse.array() }).array(),
  differences: type({ policy: 'string', 'gains?': 'object', 'loses?': 'object' }).array(),
  failed_tests: type({ policy: 'string', failures: 'string[]' }).array(),
  blocked: 'string[]',
  'warnings?': 'string[]',
} as const
export const planResponse = type(planFields).configure({ title: 'ConfigPlan' })
/** The texts of new keys are in no other response. */
export const appliedResponse = type({
  ...planFields,
  /** Deletions that `prune` would have made. */
  pending: change.array(),
  /** Of the records of this change; null if nothing had changed. */
  group_id: 'string | null',
  secrets: type({ name: 'string', key: 'string' }).array(),
}).configure({ title: 'AppliedConfig' })

/** A document: entries by kind. */
export const exportedResponse = type({
  latchkey: 'number.integer',
  organization: 'string',
  'owner?': 'string',
  'owner_locks?': 'boolean',
  ...Object.fromEntries(kinds.map((kind) => [`${kind}?`, type('object').array()])),
}).configure({ title: 'ConfigDocument' })
