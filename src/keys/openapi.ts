// The table of the key endpoints: paths, who may call, what they take and return.

import { budgetModes, budgetPeriods } from '../../db/schema/budget-schema.ts'
import { fairBys, keyKinds, queueClasses, roles } from '../../db/schema/value-names.ts'
import type { RouteDoc } from '../http/documented-route.ts'
import { keyListRowsMax, nameCharactersMax } from '../limits.ts'
import { keyReferenceText } from '../values/id-text.ts'
import { type } from '../values/shape.ts'
import { nameShape, offsetShape, referenceShape, textShape, unusedInput } from '../values/shapes.ts'
import { keyStates } from './api-key.ts'
import { graceShape } from './key-shapes.ts'
import { accessOf } from './roles.ts'
import { keyBounds } from './settable-limits.ts'

const money = 'number >= 0'
const bounds = {
  limit: 'number | null',
  limit_reset: "'daily' | 'weekly' | 'monthly' | null",
  expires_at: 'string | null',
  requests_per_minute: 'number.integer | null',
  tokens_per_minute: 'number.integer | null',
  allowed_models: 'string[] | null',
  allowed_presets: 'string[] | null',
  labels: type({ '[string]': 'string' }).or('null'),
  attribute_from_header: 'string | null',
  concurrent_requests: 'number.integer | null',
  queue_class: type.enumerated(...queueClasses),
  queue_weight: 'number.integer',
  queue_seconds: 'number.integer',
  fair_by: type.enumerated(...fairBys),
} as const

const spent = {
  per: type.enumerated(...budgetPeriods),
  unit: "'usd' | 'tokens' | 'requests'",
  limit: 'number',
  spent: 'number',
  remaining: 'number',
  resets_at: 'string | null',
} as const
/** What remains of a budget, for who may read the costs of others. */
export const spentShape = type({ ...spent, per: 'string', 'requests_without_cost?': 'number.integer' })
/** `refuses_all`: it is spent, and is about every request of the key. `spent`: unless it counts for more than the key decides. */
const keyBudget = type({
  id: 'string',
  name: 'string',
  mode: type.enumerated(...budgetModes),
  refuses_all: 'boolean',
  'spent?': spentShape.array(),
})
export type KeyBudget = typeof keyBudget.infer

const shownFields = {
  ...bounds,
  hash: 'string',
  name: 'string',
  label: 'string',
  previous_until: 'string | null',
  'current_last_used_at?': 'string | null',
  'previous_last_used_at?': 'string | null',
  disabled: 'boolean',
  workspace_id: 'string',
  id: 'string',
  kind: type.enumerated(...keyKinds),
  role: type.enumerated(...roles).or('null'),
  state: type.enumerated(...keyStates),
  owner: 'string',
  'last_used_at?': 'string | null',
  created_at: 'string',
  updated_at: 'string',
  limit_remaining: 'number | null',
  'limited_by?': keyBudget.array(),
  usage: money,
  usage_daily: money,
  usage_weekly: money,
  usage_monthly: money,
} as const
const shownKey = type(shownFields)
/** A key as operations show it, without its user's id. */
export type ShownKey = typeof shownKey.infer
/** The names of what is sent as operations show it. */
export const shownNames = Object.keys(shownFields).map((name) => name.replace('?', '')) as (keyof ShownKey)[]

const keyFields = {
  ...shownFields,
  creator_user_id: 'string',
  byok_usage: money,
  byok_usage_daily: money,
  byok_usage_weekly: money,
  byok_usage_monthly: money,
  include_byok_in_limit: 'boolean',
  external_user: 'null',
} as const
export const keyResponse = type(keyFields).configure({ title: 'Key' })
const currentResponse = type({
  ...keyFields,
  organization_id: 'string',
  is_management_key: 'boolean',
  is_provisioning_key: 'boolean',
  is_free_tier: 'boolean',
  allowed_data_regions: 'string[]',
  free_model_daily_requests: { limit: 'number.integer', remaining: 'number.integer', used: 'number.integer' },
  budgets: type({ name: 'string', ...spent }).array(),
  queue: type({
    running: 'number.integer',
    waiting: 'number.integer',
    budgets: type({ budget: 'string', running: 'number.integer', concurrent_requests: 'number.integer' }).array(),
  }),
  rate_limit: { requests: 'number.integer', interval: 'string', note: 'string' },
}).configure({ title: 'CurrentKey' })
/** Fields that the official client sends and this service does not use. */
export const ignoredFields = ['include_byok_in_limit', 'external', 'creator_user_id'] as const
const ignored = { 'include_byok_in_limit?': 'unknown', 'external?': 'unknown', 'creator_user_id?': 'unknown' } as const

export const createBody = type({
  '+': 'reject',
  ...ignored,
  ...keyBounds,
  name: nameShape,
  'role?': type.enumerated(...roles).configure({
    says: 'Makes a management key with this role, which is not above that of the caller',
  }),
  'workspace_id?': referenceShape,
})
export const updateBody = type({
  '+': 'reject',
  ...ignored,
  ...keyBounds,
  'name?': nameShape,
  'disabled?': 'boolean',
}).configure({ minProperties: 1 })
export const listQuery = type({
  '+': 'reject',
  'offset?': offsetShape,
  'include_disabled?': 'boolean',
  'workspace_id?': referenceShape,
  'owner?': referenceShape.configure({ says: 'Only keys of this user, by name or id' }),
  'state?': type.enumerated(...keyStates).configure({ says: 'Only keys in this state' }),
  'kind?': type.enumerated(...keyKinds).configure({ says: 'Only keys of this kind' }),
  'contains?': textShape(1, nameCharactersMax).configure({ says: 'Only names that contain this text, in any case' }),
  ...unusedInput,
  'limit?': `1 <= number.integer <= ${keyListRowsMax}`,
})

export const rotateBody = type({ '+': 'reject', 'grace_seconds?': graceShape })

const one = {
  path: '/keys/{hash}',
  segments: { hash: type(keyReferenceText).configure({ says: 'The hash or the id of the key' }) },
}
const rules =
  'The time in expires_at must be in the future. limit_reset needs a limit. A management key cannot have limits, ' +
  `rates, models or presets. The service ignores ${ignoredFields.join(', ')}.`

export const docs = {
  current: {
    method: 'GET',
    path: '/key',
    name: 'keyShow',
    summary: 'Show the key of this request, or the one that its access token acts as',
    access: 'inference',
    data: currentResponse,
    says: 'The key',
  },
  list: {
    method: 'GET',
    path: '/keys',
    name: 'keysList',
    summary: 'List the keys of a workspace, oldest first; by default the workspace of the management key',
    access: accessOf('keys.list'),
    query: listQuery,
    answer: type({ data: keyResponse.array(), 'total_count?': 'number.integer' }),
    says: 'The keys',
    errors: [404],
  },
  create: {
    method: 'POST',
    path: '/keys',
    name: 'keysCreate',
    summary: 'Create an inference key; its text is shown only in this response',
    rules,
    access: accessOf('keys.create'),
    body: createBody,
    status: 201,
    answer: type({ data: keyResponse, key: 'string' }),
    says: 'The key and its text',
  },
  show: {
    method: 'GET',
    ...one,
    name: 'keysShow',
    summary: 'Show a key, by its hash',
    access: accessOf('keys.show'),
    data: keyResponse,
    says: 'The key',
  },
  update: {
    method: 'PATCH',
    ...one,
    name: 'keysUpdate',
    summary: 'Change a key, by its hash; null removes a limit',
    rules: `${rules} At least one other field must be set.`,
    access: accessOf('keys.update'),
    body: updateBody,
    data: keyResponse,
    says: 'The key',
  },
  rotate: {
    ...one,
    method: 'POST',
    path: '/keys/{hash}/rotate',
    name: 'keysRotate',
    summary: 'Give a key a new text and hash; the text before works until its grace ends',
    access: accessOf('keys.rotate'),
    body: rotateBody,
    answer: type({ data: keyResponse, key: 'string' }),
    says: 'The key and its new text, which is shown only in this response',
  },
  remove: {
    method: 'DELETE',
    ...one,
    name: 'keysDelete',
    summary: 'Delete a key permanently, by its hash or id',
    access: accessOf('keys.delete'),
    answer: type({ deleted: 'true' }),
  },
} as const satisfies Record<string, RouteDoc>
