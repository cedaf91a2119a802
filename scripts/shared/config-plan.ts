// Prints what a configuration document would change, and what the linter finds in its policies.
import type { TestedDocument } from '../../src/admin/config/document-test.ts'
import type { OperationResponse } from '../../src/admin/operations.ts'
import { describeDifference, drawFinding } from './findings.ts'
import { few, printable } from './render.ts'

type Plan = OperationResponse<'config.plan'>
type Change = Plan['changes'][number]

const marks = { create: '+', update: '~', delete: '-', adopt: '>', conflict: '!' } as const
const valueCharactersMax = 200
const policiesShownMax = 10
const objectsShownMax = 10

/** Whether a document says something else than what is saved. */
export function isChanging({
  changes,
  owner_locks,
  documents = [],
}: Pick<Plan, 'changes' | 'owner_locks' | 'documents'>): boolean {
  return changes.length > 0 || [{ owner_locks }, ...documents].some((each) => each.owner_locks !== undefined)
}

export function drawPlan(plan: Plan): string {
  const { differences, counts, blocked } = plan
  if (!isChanging(plan)) return 'No changes'
  const differenceOf = new Map(differences.map(({ policy, ...difference }) => [policy, difference]))
  const widened = differences.flatMap(({ policy, gains }) => (gains === undefined ? [] : [policy]))
  const draw = (change: Change) => {
    const difference = change.kind === 'policies' ? differenceOf.get(change.name) : undefined
    return [...drawChange(change), ...(difference ? describeDifference(difference).map((line) => `    ${line}`) : [])]
  }
  const sum = Object.entries(counts).flatMap(([action, count]) => (count === 0 ? [] : [`${count} to ${action}`]))
  return [
    ...drawByOwner(plan, draw),
    ...drawReview(plan),
    ...(sum.length === 0 ? [] : ['', sum.join(', ').replace('to conflict', 'in conflict')]),
    ...(widened.length === 0 ? [] : [`Wider than before: ${few(widened.map(printable), policiesShownMax)}`]),
    ...(counts.adopt === 0
      ? []
      : ['To adopt objects that were made by hand, or that another document of these gives up, apply with --adopt.']),
    ...(counts.delete === 0 ? [] : ['To delete what the document no longer names, apply with --prune.']),
    ...(blocked.length === 0 ? [] : [`Cannot be applied: ${few(blocked.map(printable), policiesShownMax)}`]),
  ].join('\n')
}

/** What a document is tested for without a server. */
export function drawTestedDocument(tested: TestedDocument): string {
  const { policies, tests, failed_tests, blocked } = tested
  const failed = failed_tests.flatMap(({ failures }) => failures).length
  const sum = `${policies} policies, ${tests} tests, ${failed} failed`
  const isBlocked = blocked.length === 0 ? [] : [`Cannot be applied: ${printable(blocked.join(', '))}`]
  return [...drawReview(tested), '', sum, ...isBlocked].join('\n').trimStart()
}

/** What the linter finds, and the tests that fail. */
function drawReview({ findings, failed_tests }: Pick<Plan, 'findings' | 'failed_tests'>): string[] {
  const found = findings.flatMap(({ policy, findings }) => [
    `policies ${printable(policy)}`,
    ...findings.flatMap(drawFinding),
  ])
  return [
    ...(found.length === 0 ? [] : ['', 'The linter found:', ...found]),
    ...failed_tests.flatMap(({ policy, failures }) => [
      '',
      `Tests of the policy ${printable(policy)} fail:`,
      ...failures.map((failure) => `  ${printable(failure)}`),
    ]),
  ]
}

type ApplyResult = Omit<OperationResponse<'config.apply'>, 'secrets'>
type SecretOutput = { secrets: OperationResponse<'config.apply'>['secrets'] } | { secret_files: string[] }

/** What was changed, then the new keys or their files. */
export function drawApplied(applied: ApplyResult, kept: SecretOutput): string {
  const { counts, group_id, pending } = applied
  const recorded = group_id === null ? [] : [`Recorded; to see the records: latchkey audit changes --group ${group_id}`]
  if (!isChanging(applied))
    return [pending.length === 0 ? 'No changes' : 'Nothing changed', ...drawPending(pending), ...recorded].join('\n')
  const done = { create: 'created', update: 'updated', delete: 'deleted', adopt: 'adopted', conflict: 'in conflict' }
  const sums = Object.entries(done).flatMap(([action, word]) => {
    const count = counts[action as keyof typeof done]
    return count === 0 ? [] : [`${count} ${word}`]
  })
  const secrets =
    'secrets' in kept
      ? kept.secrets.map(({ name, key }) => `${printable(name)}  ${key}`)
      : kept.secret_files.map((path) => printable(path))
  const heading = 'secrets' in kept ? 'New keys, shown only once:' : 'New keys:'
  return [
    ...drawByOwner(applied, drawChange),
    ...(sums.length === 0 ? [] : ['', sums.join(', ')]),
    ...(secrets.length === 0 ? [] : ['', heading, ...secrets]),
    ...drawPending(pending),
    ...recorded,
  ].join('\n')
}

/** Without this, a document that drops objects would seem to be applied. */
function drawPending(pending: readonly Change[]): string[] {
  if (pending.length === 0) return []
  const names = pending.map(({ kind, name }) => `${kind} ${printable(name)}`)
  return [
    `Not deleted, although the document no longer names it: ${few(names, objectsShownMax)}`,
    `To delete this (${pending.length} in all), apply again with --prune.`,
  ]
}

/** Of several owners, the changes of each under its name. */
function drawByOwner(plan: Plan | ApplyResult, draw: (change: Change) => string[]): string[] {
  const { changes, documents } = plan
  if (documents === undefined) return [...drawLocks(plan), ...changes.flatMap(draw)]
  return documents.flatMap((document, index) => {
    const owned = changes.filter(({ owner }) => owner === document.owner)
    const lines = [...drawLocks(document), ...owned.flatMap(draw)]
    const heading = `Owner ${printable(document.owner ?? '')}:`
    return [...(index === 0 ? [] : ['']), heading, ...(lines.length === 0 ? ['No changes'] : lines)]
  })
}

function drawLocks({ owner, owner_locks: locks }: Pick<Plan, 'owner' | 'owner_locks'>): string[] {
  return locks === undefined ? [] : [`~ owner_locks of ${printable(owner)}: ${locks.before} → ${locks.after}`]
}

function drawChange({ kind, name, action, managed_by, fields, policies_affected = [] }: Change): string[] {
  const isOthers = ['conflict', 'adopt'].includes(action) && managed_by !== undefined
  const owner = isOthers ? ` (of the owner ${printable(managed_by)})` : ''
  return [
    `${marks[action]} ${action} ${kind} ${printable(name)}${owner}`,
    ...fields.map(drawField(action)),
    ...(policies_affected.length === 0
      ? []
      : [`    makes policies inactive: ${few(policies_affected.map(printable), policiesShownMax)}`]),
  ]
}

const drawField =
  (action: Change['action']) =>
  (field: Change['fields'][number]): string => {
    if (!('before' in field) && !('after' in field)) return `    ${field.field}: changed`
    if (action === 'create') return `    ${field.field}: ${shown(field.after)}`
    return `    ${field.field}: ${shown(field.before)} → ${shown(field.after)}`
  }

function shown(value: unknown): string {
  if (value === undefined || value === null) return 'not set'
  const text = printable(JSON.stringify(value))
  return text.length <= valueCharactersMax ? text : `${text.slice(0, valueCharactersMax)}…`
}
