// The fields of an exchange as they were sent, as a form or as JSON. It does not know which fields a grant requires.

import { Fault } from '../fault.ts'
import { parseJsonObject } from '../http/body.ts'
import { decodeUtf8 } from '../values/bytes.ts'
import { type Refusal, refuse } from './subject-token/refusal.ts'

/** Fields that any grant reads. All others are ignored. */
const knownNames = [
  'grant_type',
  'federation_policy_id',
  'federation_rule_id',
  'subject_token',
  'subject_token_type',
  'assertion',
  'requested_token_type',
  'scope',
  'actor_token',
  'actor_token_type',
  'organization_id',
  'service_account_id',
  'workspace_id',
] as const
export type FieldName = (typeof knownNames)[number]
const known: ReadonlySet<string> = new Set(knownNames)

/** A problem counts for a grant if it concerns no field, or one that the grant reads. */
export type FieldProblem = { field: FieldName | undefined; refusal: Refusal }
/** `problems` are in the order in which they were found. A field that was sent twice has its first value. */
export type SentFields = { values: ReadonlyMap<FieldName, string>; problems: readonly FieldProblem[] }

/** Reads the bytes of a form. */
export function readFormFields(body: Uint8Array): SentFields {
  const values = new Map<FieldName, string>()
  const problems: FieldProblem[] = []
  const sent = { values, problems }
  const text = decodeUtf8(body)
  for (const pair of text?.split('&') ?? ['%']) {
    if (pair === '') continue
    const split = pair.indexOf('=')
    const name = decodeField(split < 0 ? pair : pair.slice(0, split))
    const value = split < 0 ? '' : decodeField(pair.slice(split + 1))
    if (name === undefined || value === undefined) {
      problems.push({ field: undefined, refusal: refuse('form_malformed') })
      return sent
    }
    if (!isKnown(name)) continue
    if (!values.has(name)) values.set(name, value)
    else if (!problems.some(({ field }) => field === name))
      problems.push({ field: name, refusal: refuse('field_repeated', name) })
  }
  return sent
}

/** Reads the bytes of a JSON object, which may name no member twice. A member that is null counts as omitted. */
export async function readJsonFields(body: Uint8Array<ArrayBuffer>): Promise<SentFields | Refusal> {
  const values = new Map<FieldName, string>()
  const problems: FieldProblem[] = []
  try {
    const { fields } = await parseJsonObject(body, { membersOnce: true })
    for (const [name, value] of Object.entries(fields)) {
      if (!isKnown(name) || value === null) continue
      if (typeof value === 'string') values.set(name, value)
      else problems.push({ field: name, refusal: refuse('field_type', name) })
    }
  } catch (error) {
    if (error instanceof Fault && error.code === 'invalid') return refuse('json_malformed', error.message)
    throw error
  }
  return { values, problems }
}

function isKnown(name: string): name is FieldName {
  return known.has(name)
}

function decodeField(text: string): string | undefined {
  if (!/[%+]/.test(text)) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
