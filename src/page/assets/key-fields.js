// The fields of a key on the page: what the form holds of each, and the labels of its limits. What the API takes is in admin/kinds/key.ts.
/** @import { FormField, ValuesOf } from './fields.js' */

const patterns = 'One per line; `*` stands for any text. Empty allows all.'

export const keyFields = /** @type {const} */ ({
  kind: { form: 'word', common: 'inference' },
  name: { form: 'word' },
  expires_at: { form: 'time' },
  limit: {
    form: 'money',
    place: 'limits',
    label: 'Budget in US dollars',
    help: 'Such as 1250.50. It alerts at 80 and 100 percent. For limits of each attribution or label, create a budget',
  },
  limit_reset: {
    form: 'word',
    place: 'limits',
    label: 'Budget resets',
    help: 'In UTC; weeks start on Monday',
    options: [
      ['', 'never'],
      ['daily', 'every day'],
      ['weekly', 'every week'],
      ['monthly', 'every month'],
    ],
  },
  requests_per_minute: { form: 'number', place: 'limits', label: 'Requests a minute' },
  tokens_per_minute: { form: 'number', place: 'limits', label: 'Tokens a minute' },
  concurrent_requests: { form: 'number', place: 'limits', label: 'Requests at once' },
  queue_class: {
    form: 'word',
    place: 'limits',
    label: 'Queue class',
    common: 'normal',
    help: 'Which requests start first at a full inference server',
    options: [
      ['interactive', 'interactive'],
      ['normal', 'normal'],
      ['batch', 'batch'],
    ],
  },
  queue_weight: { form: 'number', place: 'limits', label: 'Queue weight', common: 1, help: 'From 1 to 100' },
  queue_seconds: { form: 'number', place: 'limits', label: 'Waits at most, in seconds', common: 30 },
  fair_by: {
    form: 'word',
    place: 'limits',
    label: 'Takes turns by',
    common: 'key',
    options: [
      ['key', 'key'],
      ['attribution', 'attribution'],
    ],
  },
  allowed_models: { form: 'lines', place: 'limits', label: 'Allowed models', help: patterns },
  allowed_presets: { form: 'lines', place: 'limits', label: 'Allowed presets', help: patterns },
  labels: {
    form: 'pairs',
    place: 'limits',
    label: 'Labels',
    help: 'name=value, one per line. Reports and budgets group keys by them.',
  },
  attribute_from_header: {
    form: 'word',
    place: 'limits',
    label: 'Attribution from header',
    help: 'Such as `x-user`. Only for a front end that sets it for each user',
  },
})
/** @typedef {ValuesOf<typeof keyFields>} KeyValues */

/** In the order of the form. */
export const keyFieldList = /** @type {readonly (readonly [name: keyof typeof keyFields, field: FormField])[]} */ (
  Object.entries(keyFields)
)
