// The fields of an issuer, in the order in which documents, responses and commands have them. What is particular to issuers lies in
// admin/issuers. A change of an issuer is judged by its policies.

import type { Issuer as IssuerRow } from '../../../db/schema/schema.ts'
import { keySources } from '../../../db/schema/value-names.ts'
import {
  clockSkewSecondsDefault,
  clockSkewSecondsMax,
  issuerKeysStaleSecondsDefault,
  issuerKeysStaleSecondsMax,
  maxTokenAgeSecondsMax,
  maxTokenAgeSecondsMin,
} from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { nameShape, referenceShape, timeShape } from '../../values/shapes.ts'
import { type Fields, storedTime } from './fields.ts'
import { issuerClientFields } from './issuer-clients.ts'
import { caShape, issuerUrlShape, urlShape } from './issuer-shapes.ts'

const keys = 'it decides how keys are found, which the linter and tests take for granted'

const text = 'string | null'
const time = type('string').configure({ format: 'date-time' })
const timeOrNull = time.or('null')

export const issuerFields = {
  id: { column: 'id', shown: 'string', line: 'id' },
  name: {
    shape: nameShape,
    required: true,
    column: 'name',
    shown: 'string',
    line: 'name',
    why: 'a token does not name it',
    flag: { option: '--name <name>', says: 'name of the issuer' },
  },
  issuer_url: {
    shape: issuerUrlShape,
    required: true,
    column: 'issuerUrl',
    shown: 'string',
    line: 'issuer URL',
    decides: ['linter', 'tests'],
    why: 'past exchanges under the other URL were not recorded for this issuer',
    flag: { option: '--issuer-url <url>', says: 'issuer URL, exactly as in the iss claim' },
  },
  organization_id: { column: 'organizationId', shown: 'string' },
  key_source: { column: 'keySource', shown: type.enumerated(...keySources), line: 'keys from' },
  discovery: {
    shape: type('true'),
    create: false,
    entry: false,
    why: keys,
    flag: { option: '--discovery', says: 'find the keys by discovery again' },
  },
  jwks_url: {
    shape: urlShape,
    isResolved: true,
    column: 'jwksUrl',
    shown: text,
    why: keys,
    flag: { option: '--jwks-url <url>', says: 'fetch the keys from this URL instead of by discovery' },
  },
  jwks: {
    shape: type('object').configure({ says: 'A JWKS of public keys, at least one of which is usable' }),
    isResolved: true,
    isSourced: true,
    shown: 'unknown',
    why: keys,
    flag: {
      option: '--jwks-file <file>',
      says: 'use the keys of this JWKS file and fetch nothing (for air-gapped sites)',
      form: 'json-file',
    },
  },
  keys_fetched_at: { shown: timeOrNull, line: 'keys fetched (UTC)' },
  keys_fetched_since_start: { shown: 'boolean | null' },
  keys_fresh_until: { shown: timeOrNull },
  keys_usable_until: { shown: timeOrNull, line: 'keys usable until (UTC)?' },
  keys_failing_since: { shown: timeOrNull, line: 'fetches fail since (UTC)?' },
  keys_failure: { shown: text, line: 'last failure?' },
  keys: { shown: type({ kid: text, algorithm: 'string' }).array(), line: 'keys' },
  keys_expire_at: {
    shape: timeShape.configure({ says: 'When a pasted JWKS expires. ISO 8601' }).or('null'),
    isResolved: true,
    column: 'keysExpireAt',
    stored: storedTime,
    shown: timeOrNull,
    line: 'keys expire (UTC)?',
    why: keys,
    flag: {
      option: '--keys-expire-at <time>',
      says: 'when the keys of the JWKS file expire: a time, or a duration such as 30d',
      form: 'future',
      no: 'keep the keys of a pasted JWKS until it is replaced',
    },
  },
  bundle_signer: {
    shape: referenceShape.configure({ says: 'The signer whose bundles alone change the keys' }).or('null'),
    isResolved: true,
    shown: text,
    why: keys,
    flag: {
      option: '--bundle-signer <signer>',
      says: 'accept keys only from signed bundles of this signer',
      no: 'let other keys than those of signed bundles in again',
    },
  },
  ca_pem: {
    shape: caShape.or('null'),
    column: 'caPem',
    isSourced: true,
    shown: text,
    why: keys,
    flag: {
      option: '--ca-file <file>',
      says: 'certificates (PEM) to trust when fetching, instead of the public ones',
      form: 'text-file',
      no: 'trust the public certificates again',
    },
  },
  keys_stale_seconds: {
    shape: type(`0 <= number.integer <= ${issuerKeysStaleSecondsMax}`),
    default: issuerKeysStaleSecondsDefault,
    column: 'keysStaleSeconds',
    shown: 'number.integer',
    line: 'keys stale after',
    why: keys,
    flag: {
      option: '--keys-stale <duration>',
      says: 'how long cached keys stay usable while they cannot be fetched (default: 24h)',
      form: 'duration',
    },
  },
  ca_expires_at: { shown: timeOrNull, line: 'private CA' },
  clock_skew_seconds: {
    shape: type(`0 <= number.integer <= ${clockSkewSecondsMax}`),
    default: clockSkewSecondsDefault,
    column: 'clockSkewSeconds',
    shown: 'number.integer',
    line: 'clock skew',
    decides: ['tests'],
    why: 'it is about the time of a token, which the linter and a back-test do not judge',
    flag: {
      option: '--clock-skew <duration>',
      says: 'how far nbf and iat may be in the future (default: 30s)',
      form: 'duration',
    },
  },
  max_token_age_seconds: {
    shape: type(`${maxTokenAgeSecondsMin} <= number.integer <= ${maxTokenAgeSecondsMax} | null`),
    column: 'maxTokenAgeSeconds',
    shown: 'number.integer | null',
    line: 'max token age',
    none: 'any',
    decides: ['tests'],
    why: 'the linter only recommends one, and a back-test does not judge times',
    flag: {
      option: '--max-token-age <duration>',
      says: 'maximum time from iat to exp of a token (default: any)',
      form: 'duration',
      no: 'accept tokens of any age that have not expired',
    },
  },
  shared: {
    shape: type('boolean')
      .configure({ says: 'Whether strangers, such as customers of the same service, can get tokens of the issuer' })
      .or('null'),
    column: 'shared',
    shown: 'boolean | null',
    line: 'strangers get tokens?',
    decides: ['linter'],
    why: 'it says who gets tokens, and an exchange does not read it',
    flag: {
      option: '--shared <answer>',
      says: 'whether strangers, such as customers of the same service, can get tokens of the issuer',
      form: 'yes-no',
    },
  },
  ...issuerClientFields,
  managed_by: { column: 'managedBy', shown: text },
  created_at: { column: 'createdAt', stored: storedTime, shown: time },
  updated_at: { column: 'updatedAt', stored: storedTime, shown: time },
} as const satisfies Fields<IssuerRow>
