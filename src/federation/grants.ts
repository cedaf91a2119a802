// The grants of the token endpoint (reference: Token exchange; RFC 8693 §2.1; RFC 7523 §2.1): the fields of each, their
// valid values, and the order of the checks. Everything after them is the same for both.

import type { grantNames } from '../../db/schema/record-schema.ts'
import { subjectTokenBytesMax } from '../limits.ts'
import { foreignIdCharactersMax, foreignIdText, uuidText } from '../values/id-text.ts'
import type { FieldName, SentFields } from './exchange-fields.ts'
import { type Refusal, refuse } from './subject-token/refusal.ts'

export const tokenExchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const jwtBearerGrant = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
export const jwtTokenType = 'urn:ietf:params:oauth:token-type:jwt'
export const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'

/** `policyId` is a lowercase UUID. */
export type ExchangeForm = { policyId: string; subjectToken: string }
type Value = (name: FieldName) => string | undefined

/** `words`: what the grant calls the fields that descriptions of refusals name. */
export type Grant = {
  name: (typeof grantNames)[number]
  fields: ReadonlySet<FieldName>
  parse: (value: Value) => ExchangeForm | Refusal
  words: ReadonlyMap<string, string>
  namesIssuedType: boolean
}

export const tokenExchange: Grant = {
  name: 'token-exchange',
  fields: new Set([
    ...(['grant_type', 'federation_policy_id', 'subject_token', 'subject_token_type', 'requested_token_type'] as const),
    ...(['scope', 'actor_token', 'actor_token_type'] as const),
  ]),
  parse: parseTokenExchange,
  words: new Map(),
  namesIssuedType: true,
}

/** Anthropic's clients send it by themselves, with ids that mean nothing here. */
export const jwtBearer: Grant = {
  name: 'jwt-bearer',
  fields: new Set([
    ...tokenExchange.fields,
    ...(['assertion', 'federation_rule_id', 'organization_id', 'service_account_id', 'workspace_id'] as const),
  ]),
  parse: parseJwtBearer,
  words: new Map([
    ['subject_token', 'assertion'],
    ['federation_policy_id', 'federation_rule_id'],
  ]),
  namesIssuedType: false,
}

/** The same in the words of a request that names the policy as token exchange does. */
const jwtBearerOfPolicy: Grant = { ...jwtBearer, words: new Map([['subject_token', 'assertion']]) }

/** The jwt-bearer grant in the words that a request uses. */
export function jwtBearerFor({ values }: SentFields): Grant {
  return values.has('federation_policy_id') && !values.has('federation_rule_id') ? jwtBearerOfPolicy : jwtBearer
}

/**
 * Parses the fields for a grant. A field without a value counts as omitted (RFC 6749 §3.2). It does not check whether
 * the token is a JWT.
 */
export function parseFields(grant: Grant, { values, problems }: SentFields): ExchangeForm | Refusal {
  const problem = problems.find(({ field }) => field === undefined || grant.fields.has(field))
  return problem?.refusal ?? grant.parse((name) => values.get(name) || undefined)
}

function parseTokenExchange(value: Value): ExchangeForm | Refusal {
  const grantType = value('grant_type')
  if (grantType === undefined) return refuse('field_missing', 'grant_type')
  if (grantType !== tokenExchangeGrant) return refuse('grant_type')
  if (value('actor_token') !== undefined || value('actor_token_type') !== undefined) return refuse('actor_token')

  const subjectTokenType = value('subject_token_type')
  if (subjectTokenType === undefined) return refuse('field_missing', 'subject_token_type')
  if (subjectTokenType !== jwtTokenType) return refuse('subject_token_type')
  if ((value('requested_token_type') ?? accessTokenType) !== accessTokenType) return refuse('requested_token_type')

  const policyId = value('federation_policy_id')
  if (policyId === undefined) return refuse('field_missing', 'federation_policy_id')
  return parseRest(policyId, value('subject_token') ?? refuse('field_missing', 'subject_token'), value)
}

const foreignIds = ['organization_id', 'service_account_id', 'workspace_id'] as const

function parseJwtBearer(value: Value): ExchangeForm | Refusal {
  if (value('actor_token') !== undefined || value('actor_token_type') !== undefined) return refuse('actor_token')
  const foreign = (['subject_token', 'subject_token_type'] as const).find((name) => value(name) !== undefined)
  if (foreign !== undefined) return refuse('grants_mixed', foreign)
  if ((value('requested_token_type') ?? accessTokenType) !== accessTokenType) return refuse('requested_token_type')

  const [policyId, ruleId] = [value('federation_policy_id'), value('federation_rule_id')]
  const id = policyId ?? ruleId
  if (id === undefined) return refuse('field_missing', 'federation_rule_id or federation_policy_id')
  if (ruleId !== undefined && ruleId.toLowerCase() !== id.toLowerCase()) return refuse('policy_ids_differ')
  const malformed = foreignIds.find((name) => !isForeignId(value(name) ?? ''))
  if (malformed !== undefined) return refuse('field_malformed', malformed)
  return parseRest(id, value('assertion') ?? refuse('field_missing', 'assertion'), value)
}

function isForeignId(text: string): boolean {
  return text.length <= foreignIdCharactersMax && foreignIdText.test(text)
}

/** What both grants have. */
function parseRest(policyId: string, subjectToken: string | Refusal, value: Value): ExchangeForm | Refusal {
  if (!uuidText.test(policyId)) return refuse('policy_id_malformed', recordable(policyId))
  if (typeof subjectToken !== 'string') return subjectToken
  if (Buffer.byteLength(subjectToken) > subjectTokenBytesMax) return refuse('subject_token_too_large')
  if ((value('scope') ?? 'inference') !== 'inference') return refuse('scope')
  return { policyId: policyId.toLowerCase(), subjectToken }
}

/**
 * Returns the value that was sent instead of an id, for the audit: it can be the policy's name. Other text can be a
 * misplaced credential and is not recorded.
 */
function recordable(text: string): string {
  return /^[\w-]{1,64}$/.test(text) ? text : '(not an id)'
}
