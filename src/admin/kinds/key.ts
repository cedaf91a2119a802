// The fields of an API key, in the order in which documents, responses and commands have them.

import type { ApiKey } from '../../../db/schema/schema.ts'
import { fairBys, limitResets, queueClasses } from '../../../db/schema/value-names.ts'
import { keyStates } from '../../keys/api-key.ts'
import { keyBounds } from '../../keys/settable-limits.ts'
import { keyHashText } from '../../values/id-text.ts'
import { queueSecondsDefault } from '../../values/queue-bounds.ts'
import { type } from '../../values/shape.ts'
import { nameShape, referenceShape } from '../../values/shapes.ts'
import { type Fields, storedMoney, storedTime } from './fields.ts'
import { keyRoleFields } from './key-role.ts'

const numberOrNull = 'number | null'

export const keyFields = {
  id: { column: 'id', shown: 'string', line: 'id' },
  hash: {
    shape: type('string')
      .narrow((text, context) => keyHashText.test(text) || context.mustBe('a SHA-256 of 64 lowercase hex digits'))
      .configure({ pattern: keyHashText.source, says: 'SHA-256 of a key that was made elsewhere' }),
    create: false,
    change: false,
    shown: 'string',
  },
  name: {
    shape: nameShape,
    required: true,
    column: 'name',
    shown: 'string',
    line: 'name',
    flag: { option: '--name <name>', says: 'name of the key' },
  },
  label: { column: 'label', shown: 'string', line: 'label' },
  /** The text before a rotation: until when it works. */
  previous_until: { shown: 'string | null', line: 'text before works until (UTC)?' },
  ...keyRoleFields,
  state: { shown: type.enumerated(...keyStates), line: 'state' },
  owner: {
    shape: nameShape,
    default: 'admin',
    change: false,
    shown: 'string',
    flag: { option: '--owner <user>', says: 'user of the key; created if it does not exist (default: admin)' },
  },
  workspace: {
    shape: referenceShape,
    entry: nameShape,
    default: 'default',
    change: false,
    shown: 'string',
    line: 'workspace',
    flag: { option: '--workspace <workspace>', says: 'workspace, by name or id (default: default)' },
  },
  disabled: { shape: type('boolean'), create: false, default: false, column: 'disabled', shown: 'boolean' },
  organization_id: { column: 'organizationId', shown: 'string' },
  workspace_id: { column: 'workspaceId', shown: 'string' },
  owner_id: { column: 'userId', shown: 'string', line: 'owner' },
  usage: { shown: 'number', line: 'used?' },
  expires_at: {
    shape: keyBounds['expires_at?'],
    column: 'expiresAt',
    stored: storedTime,
    shown: 'string | null',
    line: 'expires (UTC)?',
    flag: {
      option: '--expires-at <time>',
      says: 'when the key expires: a time such as 2027-01-01T00:00:00Z, or 30d for 30 days from now',
      form: 'future',
      no: 'never expire',
    },
  },
  limit: {
    shape: keyBounds['limit?'],
    column: 'limitNanodollars',
    stored: storedMoney,
    shown: numberOrNull,
    line: 'limit?',
    flag: {
      option: '--budget <dollars>',
      says: 'what the key may spend, in US dollars; requests without a known cost do not count (see: latchkey prices)',
      form: 'money',
      no: 'remove the budget',
    },
  },
  limit_reset: {
    shape: keyBounds['limit_reset?'],
    column: 'limitReset',
    shown: type.enumerated(...limitResets).or('null'),
    flag: {
      option: '--budget-reset <period>',
      says: 'how often the budget starts again, UTC',
      choices: limitResets,
      no: 'make it a budget for the whole life of the key',
    },
  },
  limit_remaining: { shown: numberOrNull },
  usage_daily: { shown: 'number' },
  usage_weekly: { shown: 'number' },
  usage_monthly: { shown: 'number' },
  requests_per_minute: {
    shape: keyBounds['requests_per_minute?'],
    column: 'requestsPerMinute',
    shown: numberOrNull,
    line: 'requests per minute?',
    flag: {
      option: '--requests-per-minute <number>',
      says: 'maximum number of requests per minute',
      form: 'number',
      no: 'remove the limit on requests',
    },
  },
  tokens_per_minute: {
    shape: keyBounds['tokens_per_minute?'],
    column: 'tokensPerMinute',
    shown: numberOrNull,
    line: 'tokens per minute?',
    flag: {
      option: '--tokens-per-minute <number>',
      says: 'maximum number of tokens per minute',
      form: 'number',
      no: 'remove the limit on tokens',
    },
  },
  allowed_models: {
    shape: keyBounds['allowed_models?'],
    column: 'allowedModels',
    isSet: true,
    shown: 'string[] | null',
    line: 'models?',
    flag: {
      option: '--allowed-models <pattern...>',
      says: 'models that the key may use; * matches any characters',
      no: 'remove the model restriction',
    },
  },
  allowed_presets: {
    shape: keyBounds['allowed_presets?'],
    column: 'allowedPresets',
    isSet: true,
    shown: 'string[] | null',
    line: 'presets?',
    flag: {
      option: '--allowed-presets <pattern...>',
      says: 'presets that the key may use; every request must name one of them',
      no: 'remove the preset restriction',
    },
  },
  concurrent_requests: {
    shape: keyBounds['concurrent_requests?'],
    column: 'concurrentRequests',
    shown: numberOrNull,
    line: 'requests at once?',
    flag: {
      option: '--concurrent-requests <number>',
      says: 'requests of the key that run at once; more wait for their turn',
      form: 'number',
      no: 'remove the limit on requests at once',
    },
  },
  queue_class: {
    shape: keyBounds['queue_class?'],
    default: 'normal',
    column: 'queueClass',
    shown: type.enumerated(...queueClasses),
    line: 'queue class',
    flag: {
      option: '--queue-class <class>',
      says: 'which requests start first when an inference server is full (default: normal)',
      choices: queueClasses,
    },
  },
  queue_weight: {
    shape: keyBounds['queue_weight?'],
    default: 1,
    column: 'queueWeight',
    shown: 'number',
    line: 'queue weight',
    flag: {
      option: '--queue-weight <number>',
      says: 'its share of a full inference server beside other keys of its class, from 1 to 100 (default: 1)',
      form: 'number',
    },
  },
  queue_seconds: {
    shape: keyBounds['queue_seconds?'],
    default: queueSecondsDefault,
    column: 'queueSeconds',
    shown: 'number',
    line: 'waits at most',
    flag: {
      option: '--queue-wait <duration>',
      says: 'how long a request waits for its turn; 0s refuses it at once (default: 30s)',
      form: 'duration',
    },
  },
  fair_by: {
    shape: keyBounds['fair_by?'],
    default: 'key',
    column: 'fairBy',
    shown: type.enumerated(...fairBys),
    line: 'fair by',
    flag: {
      option: '--fair-by <what>',
      says: 'whose requests take turns at a full inference server: those of keys, or of each attribution (default: key)',
      choices: fairBys,
    },
  },
  labels: {
    shape: keyBounds['labels?'],
    column: 'labels',
    normal: (value) => (Object.keys(value as object).length === 0 ? null : value),
    shown: type({ '[string]': 'string' }).or('null'),
    line: 'labels?',
    flag: {
      option: '--labels <name=value...>',
      says: 'what reports and budgets group keys by, such as team=research',
      form: 'pairs',
      no: 'remove the labels',
    },
  },
  attribute_from_header: {
    shape: keyBounds['attribute_from_header?'],
    column: 'attributeFromHeader',
    shown: 'string | null',
    line: 'attribution from header?',
    flag: {
      option: '--attribute-from-header <header>',
      says: 'header that says whose usage a call is; only for a front end that sets it for each user',
      no: 'ignore such a header',
    },
  },
  managed_by: { column: 'managedBy', shown: 'string | null' },
  created_at: { column: 'createdAt', stored: storedTime, shown: 'string' },
  updated_at: { column: 'updatedAt', stored: storedTime, shown: 'string' },
} as const satisfies Fields<ApiKey>
