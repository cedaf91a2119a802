// The fields of an upstream, in the order in which documents, responses and commands have them. What is particular to upstreams lies in
// admin/upstreams.

import type { Upstream as UpstreamRow } from '../../../db/schema/upstream-schema.ts'
import { affinities } from '../../../db/schema/value-names.ts'
import {
  issuerCaCharactersMax,
  upstreamFirstByteSecondsDefault,
  upstreamIdleSecondsDefault,
  upstreamPriorityMax,
  upstreamSecondsMax,
} from '../../limits.ts'
import { probeSecondsDefault, runningRequestsShape, weightShape } from '../../values/queue-bounds.ts'
import { type } from '../../values/shape.ts'
import { modelPatternsShape, nameShape } from '../../values/shapes.ts'
import { type Fields, storedTime } from './fields.ts'
import {
  credentialShape,
  exchangeShape,
  headersShape,
  omitNulls,
  probePathShape,
  probeShape,
  restShape,
  showExchange,
  storedHeaders,
  upstreamUrlShape,
  withoutSlash,
} from './upstream-shapes.ts'

const text = 'string | null'
const time = type('string').configure({ format: 'date-time' })
const secondsShape = type(`1 <= number.integer <= ${upstreamSecondsMax}`)

export const upstreamFields = {
  id: { column: 'id', shown: 'string', line: 'id' },
  name: {
    shape: nameShape,
    required: true,
    column: 'name',
    shown: 'string',
    line: 'name',
    flag: { option: '--name <name>', says: 'name of the upstream' },
  },
  base_url: {
    shape: upstreamUrlShape,
    required: true,
    column: 'baseUrl',
    stored: { toColumn: (url) => withoutSlash(String(url)), toShown: (url) => url },
    shown: 'string',
    line: 'base URL',
    flag: { option: '--inference-url <url>', says: 'base URL, which usually ends in /v1' },
  },
  credential: { shape: credentialShape, isResolved: true, isSecret: true, isSourced: true },
  has_credential: { shown: 'boolean', line: 'credential' },
  credential_exchange: {
    shape: exchangeShape
      .configure({ says: 'Exchanges the token in a file of the server for the credential' })
      .or('null'),
    isResolved: true,
    column: 'credentialExchange',
    stored: { toColumn: (exchange) => exchange, toShown: showExchange },
    normal: omitNulls,
    shown: type({ token_file: 'string', url: text, policy: text, audience: text, scope: text }).or('null'),
  },
  models: {
    shape: modelPatternsShape,
    default: ['*'],
    isSet: true,
    column: 'models',
    shown: 'string[]',
    line: 'models',
    flag: { option: '--models <pattern...>', says: 'models that it serves; * matches any characters (default: all)' },
  },
  priority: {
    shape: type(`0 <= number.integer <= ${upstreamPriorityMax}`),
    default: upstreamPriorityMax,
    column: 'priority',
    shown: 'number.integer',
    line: 'priority',
    flag: {
      option: '--priority <number>',
      says: 'order in which servers are tried, from 0 (first) to 100 (default: 100)',
      form: 'number',
    },
  },
  max_running: {
    shape: runningRequestsShape,
    column: 'maxRunning',
    shown: 'number.integer | null',
    line: 'running at most?',
    flag: {
      option: '--max-running <number>',
      says: 'requests that it runs at once; more wait for their turn (default: any number)',
      form: 'number',
      no: 'let it run any number of requests at once',
    },
  },
  weight: {
    shape: weightShape,
    default: 1,
    column: 'weight',
    shown: 'number.integer',
    line: 'weight',
    flag: {
      option: '--weight <number>',
      says: 'its share of the load among servers of the same priority, from 1 to 100 (default: 1)',
      form: 'number',
    },
  },
  affinity: {
    shape: type.enumerated(...affinities),
    default: 'none',
    column: 'affinity',
    shown: type.enumerated(...affinities),
    line: 'affinity',
    flag: {
      option: '--affinity <what>',
      says: 'what keeps requests at one of several servers, for its cache of prompts (default: none)',
      choices: affinities,
    },
  },
  probe_path: {
    shape: probePathShape.or('null'),
    column: 'probePath',
    shown: text,
    line: 'probe path?',
    flag: {
      option: '--probe-path <path>',
      says: 'path that shows its health, beside its /v1, such as /health (default: no probe)',
      no: 'do not probe it',
    },
  },
  probe_seconds: {
    shape: type(`1 <= number.integer <= ${upstreamSecondsMax}`),
    default: probeSecondsDefault,
    column: 'probeSeconds',
    shown: 'number.integer',
    flag: {
      option: '--probe-every <duration>',
      says: 'how often it is probed (default: 5s)',
      form: 'duration',
    },
  },
  send_priority: {
    shape: type('boolean'),
    default: false,
    column: 'sendPriority',
    shown: 'boolean',
    line: 'send priority',
    flag: {
      option: '--send-priority',
      says: 'set `priority` in bodies by the class of the key, for a vLLM with priority scheduling',
      no: 'leave bodies as they are',
    },
  },
  send_fairness_id: {
    shape: type('boolean'),
    default: false,
    column: 'sendFairnessId',
    shown: 'boolean',
    line: 'send fairness id',
    flag: {
      option: '--send-fairness-id',
      says: 'send whose request it is, for the inference extension of the Gateway API',
      no: 'do not send whose request it is',
    },
  },
  ca_pem: {
    shape: type(`string <= ${issuerCaCharactersMax} | null`),
    isSourced: true,
    column: 'caPem',
    shown: text,
    line: 'private CA',
    flag: {
      option: '--ca-file <file>',
      says: 'certificates (PEM) to trust instead of the public ones',
      form: 'text-file',
      no: 'trust the public certificates again',
    },
  },
  first_byte_seconds: {
    shape: secondsShape,
    default: upstreamFirstByteSecondsDefault,
    column: 'firstByteSeconds',
    shown: 'number.integer',
    line: 'first byte within',
    flag: {
      option: '--first-byte <duration>',
      says: 'maximum time until the response starts (default: 10m)',
      form: 'duration',
    },
  },
  idle_seconds: {
    shape: secondsShape,
    default: upstreamIdleSecondsDefault,
    column: 'idleSeconds',
    shown: 'number.integer',
    line: 'silent at most',
    flag: {
      option: '--idle <duration>',
      says: 'maximum silence during a response (default: 5m)',
      form: 'duration',
    },
  },
  forward_headers: {
    shape: headersShape,
    default: [],
    isSet: true,
    column: 'forwardHeaders',
    stored: storedHeaders('forwarded'),
    shown: 'string[]',
    line: 'extra request headers',
    flag: {
      option: '--forward-header <name...>',
      says: 'also forward these request headers; never credentials',
      no: 'forward only the request headers that inference needs',
    },
  },
  return_headers: {
    shape: headersShape,
    default: [],
    isSet: true,
    column: 'returnHeaders',
    stored: storedHeaders('returned'),
    shown: 'string[]',
    line: 'extra response headers',
    flag: {
      option: '--return-header <name...>',
      says: 'also return these response headers to callers',
      no: 'return only the response headers that clients use',
    },
  },
  running: { shown: 'number.integer | null', line: 'running?' },
  waiting: { shown: 'number.integer | null', line: 'waiting?' },
  rests: { shown: restShape.array(), line: 'resting?' },
  probe: { shown: probeShape.or('null'), line: 'probe?' },
  managed_by: { column: 'managedBy', shown: text },
  created_at: { column: 'createdAt', stored: storedTime, shown: time.or('null') },
  updated_at: { column: 'updatedAt', stored: storedTime, shown: time.or('null') },
} as const satisfies Fields<UpstreamRow>
