// The fields of a webhook, in the order in which documents, responses and commands have them. What is particular to webhooks lies in
// admin/webhooks.

import { alertTypes, type Webhook } from '../../../db/schema/alert-schema.ts'
import { issuerCaCharactersMax, urlCharactersMax } from '../../limits.ts'
import { secretProblem } from '../../monitoring/alerts/signature.ts'
import { type } from '../../values/shape.ts'
import { nameShape, textCheckedLater } from '../../values/shapes.ts'
import { type Fields, storedTime } from './fields.ts'

const time = type('string').configure({ format: 'date-time' })
const text = 'string | null'
const eventShape = type.enumerated('*', ...alertTypes)

/** The error does not quote the secret. */
const secretShape = type('unknown')
  .narrow((value, context) => {
    const problem = typeof value === 'string' ? secretProblem(value) : 'must be a text'
    return problem === undefined || context.reject({ expected: `a secret that ${problem}`, actual: '' })
  })
  .as<string>()
  .configure({ says: '24 to 64 bytes in base64, with or without whsec_ in front. Without it, a new one is made' })

export const webhookFields = {
  id: { column: 'id', shown: 'string', line: 'id' },
  name: {
    shape: nameShape,
    required: true,
    column: 'name',
    shown: 'string',
    line: 'name',
    flag: { option: '--name <name>', says: 'name of the webhook' },
  },
  organization_id: { column: 'organizationId', shown: 'string' },
  enabled: {
    shape: type('boolean'),
    create: false,
    default: true,
    column: 'enabled',
    shown: 'boolean',
    line: 'enabled',
  },
  url: {
    shape: textCheckedLater(urlCharactersMax, 'https://, or a network that the server allows for webhooks'),
    required: true,
    column: 'url',
    shown: 'string',
    line: 'URL',
    flag: {
      option: '--webhook-url <url>',
      says: 'where to send alerts; https://, or a host in LATCHKEY_WEBHOOK_NETWORKS',
    },
  },
  events: {
    shape: eventShape
      .array()
      .moreThanLength(0)
      .atMostLength(alertTypes.length + 1),
    default: ['*'],
    isSet: true,
    column: 'events',
    shown: 'string[]',
    line: 'events',
    flag: { option: '--events <type...>', says: 'which events to send: * or types of events (default: *, all)' },
  },
  secret: { shape: secretShape, isResolved: true, isSecret: true, isSourced: true },
  has_secret: { shown: 'boolean' },
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
  waiting: { shown: 'number.integer', line: 'waiting' },
  delivered_at: { shown: time.or('null') },
  failing_since: { shown: time.or('null') },
  problem: { shown: text, line: 'problem?' },
  managed_by: { column: 'managedBy', shown: text },
  created_at: { column: 'createdAt', stored: storedTime, shown: time },
  updated_at: { column: 'updatedAt', stored: storedTime, shown: time },
} as const satisfies Fields<Webhook>
