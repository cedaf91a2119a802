// The fields of a policy (reference: Policy), in the order in which documents, responses and commands have them. What is particular to
// policies lies in admin/policies.

import type { Policy as PolicyRow } from '../../../db/schema/schema.ts'
import { roles } from '../../../db/schema/value-names.ts'
import { accessTokenLifetimeSecondsMax, accessTokenLifetimeSecondsMin } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import {
  claimValueShape,
  modelPatternsShape,
  nameShape,
  presetPatternsShape,
  referenceShape,
  textShape,
  withoutApiKey,
} from '../../values/shapes.ts'
import { everyJudge, type Fields, storedTime } from './fields.ts'
import { attributionShape, conditionShape, exceptionsShape, testsShape } from './policy-shapes.ts'

const descriptionCharactersMax = 1_000
export const policyStates = ['enabled', 'paused', 'inactive'] as const
const text = 'string | null'
const time = type('string').configure({ format: 'date-time' })
const bounds = 'it bounds the access token, and decides nothing about the subject token'

export const policyFields = {
  id: { column: 'id', shown: 'string', line: 'id' },
  name: {
    shape: nameShape,
    required: true,
    column: 'name',
    shown: 'string',
    line: 'name',
    why: 'a token does not name it',
    flag: { option: '--name <name>', says: 'name of the policy' },
  },
  description: {
    shape: withoutApiKey(textShape(1, descriptionCharactersMax)).or('null'),
    column: 'description',
    shown: text,
    line: 'description?',
    why: 'it is for people',
    flag: { option: '--description <text>', says: 'what the policy is for', no: 'remove the description' },
  },
  organization_id: { column: 'organizationId', shown: 'string' },
  state: { shown: type.enumerated(...policyStates), line: 'state' },
  inactive_reason: { shown: text },
  issuer: {
    shape: referenceShape,
    entry: nameShape,
    required: true,
    isResolved: true,
    column: 'issuerId',
    decides: ['linter', 'tests'],
    why: 'past exchanges under the other issuer were not recorded for this policy',
    flag: { option: '--issuer <issuer>', says: 'issuer of the tokens, by name or id' },
  },
  issuer_id: { column: 'issuerId', shown: 'string' },
  issuer_name: { shown: 'string' },
  issuer_url: { shown: 'string', line: 'issuer' },
  issuer_deleted: { shown: 'boolean' },
  key: {
    shape: referenceShape,
    entry: nameShape,
    required: true,
    isResolved: true,
    column: 'keyId',
    why: 'it says as whom a token acts, and decides nothing about the token',
    flag: { option: '--key <key>', says: 'target key, which access tokens act as, by name, id or hash' },
  },
  audience: {
    shape: claimValueShape,
    required: true,
    column: 'audience',
    shown: 'string',
    line: 'audience',
    decides: everyJudge,
    flag: { option: '--audience <audience>', says: 'value that the aud claim must equal or contain' },
  },
  subject: {
    shape: claimValueShape.or('null'),
    column: 'subject',
    shown: text,
    line: 'subject',
    decides: everyJudge,
    flag: {
      option: '--subject <subject>',
      says: 'value that the sub claim must equal; on GitHub repo:OWNER@OWNER_ID/REPO@REPO_ID:… or the older repo:OWNER/REPO:…',
      no: 'remove the subject; the condition then decides alone',
    },
  },
  condition: {
    shape: conditionShape.or('null'),
    column: 'condition',
    shown: text,
    line: 'condition',
    decides: everyJudge,
    flag: {
      option: '--condition <cel>',
      says: 'CEL condition on the token, e.g. "claims.environment == \'production\'"',
      no: 'remove the condition; the subject then decides alone',
    },
  },
  condition_environment: { column: 'conditionEnvironment', shown: 'number.integer | null' },
  attribute_to: {
    shape: attributionShape.or('null'),
    column: 'attributeTo',
    shown: text,
    line: 'attribute to?',
    decides: everyJudge,
    flag: {
      option: '--attribute-to <cel>',
      says: 'CEL expression of whose usage it is, such as claims.repository_id (default: the subject)',
      no: 'attribute usage to the subject',
    },
  },
  required_scope: {
    shape: claimValueShape.or('null'),
    column: 'requiredScope',
    shown: text,
    line: 'required scope',
    decides: everyJudge,
    flag: {
      option: '--require-scope <scope>',
      says: 'value that the scopes claim must contain',
      no: 'remove the scope check',
    },
  },
  required_token_type: {
    shape: claimValueShape.or('null'),
    column: 'requiredTokenType',
    shown: text,
    line: 'required token_type',
    decides: everyJudge,
    flag: {
      option: '--require-token-type <type>',
      says: 'value that the token_type claim must equal',
      no: 'remove the token type check',
    },
  },
  key_id: { column: 'keyId', shown: 'string' },
  key_name: { shown: 'string', line: 'target key' },
  role: { shown: type.enumerated(...roles).or('null'), line: 'signs in to the page as?' },
  key_disabled: { shown: 'boolean' },
  key_deleted: { shown: 'boolean' },
  enabled: {
    shape: type('boolean'),
    create: false,
    default: true,
    column: 'enabled',
    shown: 'boolean',
    why: 'the tokens that an enabled policy accepts stay the same',
  },
  replay_protection: {
    shape: type('boolean'),
    default: false,
    column: 'replayProtection',
    shown: 'boolean',
    decides: ['tests', 'backtest'],
    why: 'it changes how often a token passes, not whose tokens pass',
    line: 'replay protection',
    flag: {
      option: '--replay-protection',
      says: 'accept each token once; tokens must have a jti claim',
      no: 'accept a token more than once',
    },
  },
  allowed_models: {
    shape: modelPatternsShape.or('null'),
    column: 'allowedModels',
    isSet: true,
    shown: 'string[] | null',
    line: 'models?',
    why: bounds,
    flag: {
      option: '--allowed-models <pattern...>',
      says: 'models that access tokens may use; * matches any characters',
      no: 'remove the model restriction',
    },
  },
  allowed_presets: {
    shape: presetPatternsShape.or('null'),
    column: 'allowedPresets',
    isSet: true,
    shown: 'string[] | null',
    line: 'presets?',
    why: bounds,
    flag: {
      option: '--allowed-presets <pattern...>',
      says: 'presets that access tokens may use; every request must name one of them',
      no: 'remove the preset restriction',
    },
  },
  max_lifetime_seconds: {
    shape: type(`${accessTokenLifetimeSecondsMin} <= number.integer <= ${accessTokenLifetimeSecondsMax}`),
    default: accessTokenLifetimeSecondsMax,
    column: 'maxLifetimeSeconds',
    shown: 'number.integer',
    line: 'max lifetime',
    why: bounds,
    flag: {
      option: '--max-lifetime <duration>',
      says: 'maximum lifetime of an access token, 1m to 15m (default: 15m)',
      form: 'duration',
    },
  },
  tests: {
    shape: testsShape.or('null'),
    column: 'tests',
    normal: withoutEmpty,
    shown: type({ name: 'string', claims: 'object', expect: 'string' }).array().or('null'),
    decides: ['tests'],
    why: 'they check the rules and are not among them',
    line: 'tests?',
    flag: {
      option: '--tests <file>',
      says: 'JSON file with tests, which are stored with the policy and run now; - for standard input',
      form: 'json-file',
      no: 'remove the tests',
    },
  },
  lint_exceptions: {
    shape: exceptionsShape.or('null'),
    column: 'lintExceptions',
    normal: sortedByRule,
    shown: type({ rule: 'string', because: 'string' }).array().or('null'),
    decides: ['linter'],
    why: 'only the linter accepts them',
    line: 'lint exceptions?',
    flag: {
      option: '--allow <rule...>',
      says: 'save the policy despite findings of these lint rules; replaces earlier exceptions',
      no: 'remove the lint exceptions',
    },
  },
  managed_by: { column: 'managedBy', shown: text },
  created_at: { column: 'createdAt', stored: storedTime, shown: time },
  updated_at: { column: 'updatedAt', stored: storedTime, shown: time },
} as const satisfies Fields<PolicyRow>

function withoutEmpty(value: unknown): unknown {
  return Array.isArray(value) && value.length === 0 ? null : value
}

function sortedByRule(value: unknown): unknown {
  const exceptions = withoutEmpty(value) as PolicyRow['lintExceptions']
  return exceptions?.toSorted((one, other) => (one.rule < other.rule ? -1 : 1)) ?? null
}
