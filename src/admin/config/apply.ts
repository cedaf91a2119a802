// Saves what configuration documents change: all of it in one commit with its records, or nothing.

import { mapInSlices, nextSlice } from '../../../db/read/pace.ts'
import type { ConfigDocument } from '../../../db/schema/schema.ts'
import type { TouchedRow } from '../../../db/tables/admin-changes.ts'
import { putConfigDocument } from '../../../db/tables/config-documents.ts'
import { updateIssuer } from '../../../db/tables/issuers.ts'
import { Fault } from '../../fault.ts'
import { kindRecords, recordOf } from '../kinds/kinds.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { checkDocumentLock } from '../operation/document-lock.ts'
import { isBlocking } from '../policies/policy-lint.ts'
import { collections } from './collections.ts'
import type { Change } from './plan.ts'
import type { OwnedDocument, PreparedDocuments } from './prepare.ts'

/** What was decided beside the documents. `fingerprint` is that of the plan that was reviewed; `sha256s`, one for each document, and
 * `revision` are for the record. */
export type Decisions = {
  prune?: boolean
  adopt?: boolean
  fingerprint?: string
  sha256s?: readonly string[]
  revision?: string
}

/** A new key, whose text is shown once. */
export type NewSecret = { name: string; key: string }

/**
 * What was done. Its records have the group, which is null if nothing had changed. `pending`: the deletions that were not asked
 * for.
 */
export type ApplyResult = { applied: Change[]; pending: Change[]; secrets: NewSecret[]; groupId: string | null }

const namesShownMax = 5

/**
 * When it resolves, the changes are durable and in force. Returns those that were made, and the texts of new keys.
 * @throws Fault `conflict` if the plan differs from the one that was reviewed, or takes an object from somebody; `invalid` for a policy that
 * is too wide or fails a test
 */
export async function applyChanges(
  context: ChangeContext,
  prepared: PreparedDocuments,
  decisions: Decisions,
): Promise<ApplyResult> {
  rejectUndecided(prepared, decisions)
  await nextSlice()
  const isPending = ({ action }: Change) => action === 'delete' && decisions.prune !== true
  const pending = prepared.changes.filter(isPending)
  const applied = prepared.changes.filter((change) => !isPending(change))
  checkDocumentLocks(context, prepared, applied)
  const documents = documentRows(context.now(), prepared, applied, decisions)
  if (documents.length === 0) return { applied, pending, secrets: [], groupId: null }
  const users = [...prepared.users.values()]
  const deleted = applied.filter(({ action }) => action === 'delete')
  const kept = applied.filter(({ action }) => action !== 'delete')
  const saved = await mapInSlices(kept, (change) => ({ change, draft: draftOf(prepared, change) }))
  const savings = await mapInSlices(saved, ({ draft }) => draft.save())
  const now = context.now()
  // A name or an issuer URL that is given up may be in use again.
  const statements = [
    ...documents.map(putConfigDocument),
    ...deleted.map(({ kind, id = '' }) => collections[kind].remove(context.orm, id, now)),
    ...users.flatMap((user) => user.statements),
    ...applied.filter(changesUrl).map(({ id = '' }) => updateIssuer(context.orm, id, { issuerUrl: `moved ${id}` })),
    ...savings.flat(),
  ]
  const touched: TouchedRow[] = applied.map((change) => ({
    kind: kindRecords[change.kind].one,
    id: change.id ?? draftOf(prepared, change).id,
  }))
  const groupId = crypto.randomUUID()
  await nextSlice()
  await commit({ ...context, groupId }, statements, [
    ...documents.map(({ id }) => ({ kind: 'document', id }) as const),
    ...users.flatMap((user) => user.touched),
    ...touched,
  ])
  const secrets = saved.flatMap(({ change: { name }, draft: { secret } }) =>
    secret === undefined ? [] : [{ name, key: secret }],
  )
  return { applied, pending, secrets, groupId }
}

/** Such issuers may take the URLs of one another. */
function changesUrl({ kind, action, fields }: Change): boolean {
  return kind === 'issuers' && action !== 'create' && fields.some(({ field }) => field === 'issuer_url')
}

/**
 * The rows that say what was applied for each owner; every group of records begins with them. One that changes nothing has none if the
 * same document was applied last.
 */
function documentRows(
  now: number,
  { organizationId, documents }: PreparedDocuments,
  changes: readonly Change[],
  { sha256s = [], revision: revisionGiven }: Decisions,
): ConfigDocument[] {
  const revision = revisionGiven ?? null
  const changed = new Set(changes.map(({ owner = null }) => owner))
  return documents.flatMap((document, index) => {
    const { applied, owner, isLocked } = document
    const sha256 = sha256s[index] ?? null
    if (!changed.has(owner) && isApplied(document, sha256, revision)) return []
    const { id, createdAt } = applied ?? { id: crypto.randomUUID(), createdAt: now }
    return [{ ...{ id, organizationId, owner, locked: isLocked, sha256, revision }, createdAt, updatedAt: now }]
  })
}

/** Whether the same document was applied last: then there is nothing to record. */
function isApplied({ applied, locks }: OwnedDocument, sha256: string | null, revision: string | null): boolean {
  if (applied === undefined) return locks === undefined && sha256 === null && revision === null
  return locks === undefined && applied.sha256 === sha256 && applied.revision === revision
}

/** A document without an owner is an edit by hand, also of what a document with an owner locks. It is always alone. */
function checkDocumentLocks(
  context: Needs<'registry' | 'actor' | 'operation' | 'warn'>,
  { organizationId, documents }: PreparedDocuments,
  changes: readonly Change[],
): void {
  if (documents.some(({ owner }) => owner !== null)) return
  for (const { kind, name, managedBy } of changes) {
    const within = recordOf(kind).isCommon === true ? {} : { organizationId }
    if (managedBy !== undefined) checkDocumentLock(context, kindRecords[kind].one, { name, managedBy, ...within })
  }
}

function draftOf(prepared: PreparedDocuments, change: Change) {
  const draft = prepared.draftOf(change)
  if (draft === undefined) throw new Error(`The change of ${change.kind} ${JSON.stringify(change.name)} has no draft`)
  return draft
}

function rejectUndecided(
  { changes, findings, failedTests, fingerprint }: PreparedDocuments,
  { adopt, fingerprint: reviewed }: Decisions,
): void {
  if (reviewed !== undefined && reviewed !== fingerprint)
    throw new Fault(
      'conflict',
      'The document or the configuration has changed since the plan; plan again and review it',
    )
  const conflicts = changes.filter(({ action }) => action === 'conflict')
  if (conflicts.length > 0)
    throw new Fault('conflict', `Another owner has ${namesOf(conflicts)}; remove this from one of the documents`)
  const adopted = changes.filter(({ action }) => action === 'adopt')
  if (adopted.length > 0 && adopt !== true) {
    const isMoved = adopted.every(({ managedBy }) => managedBy !== undefined)
    throw new Fault(
      'conflict',
      `${isMoved ? 'Of another owner so far' : 'Made by hand'}: ${namesOf(adopted)}; to let the document own this, set adopt`,
      { hint: ' (--adopt)' },
    )
  }
  for (const { policy, findings: found } of findings)
    for (const finding of found.filter(isBlocking))
      throw new Fault(
        'invalid',
        `policies ${JSON.stringify(policy)}: too wide (${finding.rule}). ${finding.message} ${finding.fix}`,
      )
  for (const { policy, failures } of failedTests)
    throw new Fault('invalid', `policies ${JSON.stringify(policy)}: a test fails. ${failures.join('; ')}`, {
      reason: 'test_failed',
    })
}

function namesOf(changes: readonly Change[]): string {
  const names = changes.slice(0, namesShownMax).map(({ kind, name }) => `${kind} ${JSON.stringify(name)}`)
  const more = changes.length - names.length
  return names.join(', ') + (more > 0 ? ` and ${more} more` : '')
}
