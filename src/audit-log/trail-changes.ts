// The changes in a trail: who changed issuers, policies, keys and prices, and how, in words. Each must follow from the one before it. Rules only.
import type { CheckedProof } from './row-proof.ts'
import type { TrailHead } from './trail-format.ts'

type Fields = Readonly<Record<string, unknown>>
export type ProvenChange = {
  file: string
  index: number
  at: string
  by: string
  operation: string
  kind: string
  target_id: string
  before: Fields | null
  after: Fields | null
}

type ChangeRow = Record<'actor' | 'operation' | 'kind' | 'target_id', string> &
  Record<'actor_key_id' | 'os_user' | 'actor_issuer' | 'actor_subject' | 'before' | 'after', string | null | undefined>

/** Takes apart the row of a change that was proven. */
export function parseChange(
  file: string,
  { index, at, row }: Pick<Extract<CheckedProof, { problem: undefined }>, 'index' | 'at' | 'row'>,
): ProvenChange {
  const {
    actor,
    actor_key_id: key,
    os_user: user,
    before,
    after,
    operation,
    kind,
    target_id,
  } = JSON.parse(row) as ChangeRow
  const fields = (text: string | null | undefined) => (text == null ? null : (JSON.parse(text) as Fields))
  const by = [actor, ...(key == null ? [] : [key]), ...(user == null ? [] : [`(${user})`])].join(' ')
  return { file, index, at, by, operation, kind, target_id, before: fields(before), after: fields(after) }
}

/** Finds a change that was left out, from the state before the next one, and an issuer that is another one. The newest change can be missing. */
export function checkChanges(
  changes: readonly ProvenChange[],
  head: TrailHead,
  report: (problem: string) => void,
): void {
  const newest = new Map<string, Fields | null>()
  let hasIssuer = false
  for (const { file, kind, target_id: id, before, after } of changes) {
    const name = `${kind} ${id}`
    const known = newest.get(name) ?? null
    if (known?.updated_at !== before?.updated_at)
      report(`${file}: the change of this ${kind} before it is missing, from changes/ or from the log`)
    newest.set(name, after)
    if (kind === 'issuer' && id === head.issuer_id && after?.issuer_url === head.issuer_url) hasIssuer = true
  }
  if (!hasIssuer) report(`No change in the log says that the issuer is ${head.issuer_url}`)
}

/** Columns that say nothing about who gets in, or what is shown elsewhere. */
const leftOut = [
  'id',
  'organization_id',
  'workspace_id',
  'created_at',
  'updated_at',
  'name',
  'hash',
  'previous_hash',
  'owner_id',
]

/** What a change did, in words: the whole rule of a new policy, otherwise the fields that differ. */
export function describeChange({ kind, before, after }: ProvenChange, name: (id: string) => string): string {
  if (after === null) return 'removed'
  if (before !== null && before.deleted_at == null && after.deleted_at != null) return 'deleted'
  const rule = kind === 'policy' ? `${describePolicy(after, name)} ` : ''
  if (kind === 'policy' && before === null) return rule.trimEnd()
  const fields = Object.entries(after).filter(
    ([field, value]) => !leftOut.includes(field) && !isSame(before === null ? null : before[field], value),
  )
  const shown = fields.map(([field, value]) =>
    before === null ? `${field}: ${show(value)}` : `${field}: ${show(before[field])} → ${show(value)}`,
  )
  const changed = shown.join('; ')
  return rule === '' ? changed : `${changed === '' ? 'saved again' : changed}. Since then: ${rule.trimEnd()}`
}

type Says = (value: unknown, name: (id: string) => string) => string
const ifSet =
  (before: string): Says =>
  (value) =>
    value == null ? '' : `${before} ${show(value)}`

/** What the sentence on a policy says of each field, in this order. All other fields that are set follow it. */
const sentence: Readonly<Record<string, Says>> = {
  issuer_id: (id, name) => `Lets in tokens of ${name(String(id))}`,
  audience: (audience) => ` for the audience ${show(audience)}`,
  subject: (subject) => (subject == null ? ' with any subject' : ` with the subject ${show(subject)}`),
  condition: ifSet(' where'),
  required_scope: ifSet(', with the scope'),
  required_token_type: ifSet(', of the type'),
  key_id: (id, name) => `; they use the key ${name(String(id))}`,
  enabled: (enabled) => (enabled === 0 ? '; it is off' : ''),
  deleted_at: () => '',
}

function describePolicy(policy: Fields, name: (id: string) => string): string {
  const others = Object.entries(policy).filter(
    ([field, value]) => value != null && !leftOut.includes(field) && !Object.hasOwn(sentence, field),
  )
  const said = Object.entries(sentence).map(([field, says]) => says(policy[field], name))
  return [...said, ...others.map(([field, value]) => `; ${field}: ${show(value)}`), '.'].join('')
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one ?? null) === JSON.stringify(other ?? null)
}

function show(value: unknown): string {
  return value == null ? '–' : typeof value === 'string' ? value : JSON.stringify(value)
}
