// The fields of prices, upstreams and the organization on the page. What the API takes is in admin/kinds/price.ts, admin/kinds/upstream.ts and
// admin/organizations.ts; a test compares them.

const million = 'US dollars a million'

export const priceFields = /** @type {const} */ ({
  model: {
    form: 'word',
    label: 'Model',
    help: 'A name, or a pattern such as `meta/*`. The most specific pattern applies',
    isNeeded: true,
  },
  prompt: { form: 'money', label: 'Prompt tokens', help: million, isKept: true, common: null },
  completion: { form: 'money', label: 'Completion tokens', help: million, isKept: true, common: null },
  cached: { form: 'money', label: 'Cached prompt tokens', help: `${million}; empty: as prompt tokens` },
  character: { form: 'money', label: 'Characters of speech', help: million },
  image: { form: 'money', label: 'Images', help: 'US dollars each' },
  audio_second: { form: 'money', label: 'Seconds of audio', help: 'US dollars each' },
  max_output_tokens: {
    form: 'number',
    label: 'Longest response in tokens',
    help: 'What a running request holds of budgets that hold the most that requests can use',
  },
  from: { form: 'time', label: 'From', help: 'Empty: now. Until then, the price stays as it is' },
})

export const upstreamFields = /** @type {const} */ ({
  models: { form: 'lines', label: 'Models', help: 'One pattern per line', common: ['*'] },
  priority: { form: 'number', label: 'Priority', help: 'From 0, which is tried first, to 100', isKept: true },
  weight: {
    form: 'number',
    label: 'Weight',
    help: 'Its share among servers of the same priority, from 1 to 100',
    isKept: true,
  },
  max_running: { form: 'number', label: 'Requests at once', help: 'More wait for their turn. Empty: any number' },
  affinity: {
    form: 'word',
    label: 'Affinity',
    help: 'What keeps requests at one server, for its cache of prompts',
    options: [
      ['none', 'none'],
      ['session', 'session'],
      ['prefix', 'prefix'],
    ],
  },
  probe_path: { form: 'word', label: 'Probe path', help: 'Such as /health. Empty: no probe' },
  probe_seconds: { form: 'number', label: 'Probe every, in seconds', isKept: true },
  first_byte_seconds: { form: 'number', label: 'First byte within seconds', isKept: true },
  idle_seconds: { form: 'number', label: 'Silent for at most seconds', isKept: true },
  send_priority: { form: 'flag', label: 'Send `priority` in bodies', help: 'For a vLLM with priority scheduling' },
  send_fairness_id: {
    form: 'flag',
    label: 'Send whose request it is',
    help: 'For the inference extension of the Gateway API',
  },
})

export const organizationFields = /** @type {const} */ ({
  record_claims: {
    form: 'word',
    label: 'Claims in the audit log',
    help: 'What exchanges record for back-tests, tests and completion',
    options: [
      ['off', 'none'],
      ['selected', 'those that policies and the linter read'],
      ['hashed', 'the same, hashed'],
      ['all', 'all'],
    ],
  },
  time_zone: { form: 'word', label: 'Time zone', help: 'Such as Europe/Berlin. Budgets reset by it; empty: UTC' },
  budget_headers: {
    form: 'flag',
    label: 'Show callers what remains of their budgets',
    help: 'In headers of responses',
  },
  upstream_headers: { form: 'flag', label: 'Show callers which server responded', help: 'In a header of responses' },
})
