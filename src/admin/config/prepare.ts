// From documents to what they would change: every entry is drafted and checked, compared with what is saved, and its policies are linted.
import { createPace, nextSlice } from '../../../db/read/pace.ts'
import type { ConfigDocument as AppliedDocument } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import { issuerUrlTaken } from '../issuers/issuers.ts'
import { type Entry, type Kind, kindRecords, kinds, recordOf } from '../kinds/kinds.ts'
import { rejectCrowd } from '../operation/budget-count.ts'
import type { Needs } from '../operation/context.ts'
import { findOrganization } from '../operation/references.ts'
import { collections } from './collections.ts'
import type { ConfigDocument } from './document.ts'
import { createDraftState, type Draft, type DraftContext, type DraftState } from './drafts.ts'
import { type Change, fingerprintOf, type LockChange, planCollection, type SavedEntry } from './plan.ts'
import { addAffected, type Review, rejectHarmfulIssuers, reviewPolicies } from './review.ts'

/** One of the documents that are planned together, each of another owner. */
export type OwnedDocument = {
  owner: string | null
  /** The document of this owner that was applied last. */
  applied: Readonly<AppliedDocument> | undefined
  isLocked: boolean
  locks: LockChange
}

export type PreparedDocuments = Review & {
  organizationId: string
  documents: OwnedDocument[]
  /** By kind, then in the order of the documents, then by name. */
  changes: Change[]
  /** By kind and name. */
  draftOf: (change: Change) => Draft | undefined
  /** Differs when the changes differ, or when an object that they change was saved since. */
  fingerprint: string
  users: DraftState['users']
}

/**
 * Several documents are planned as one: kind after kind, so that a policy may name an issuer or a key of any of them. `isPruned`: what a
 * document no longer names will be deleted.
 * @throws Fault `invalid`, `not_found` or `conflict` that names the entry which cannot be saved
 */
export async function prepare(
  context: DraftContext & Needs<'actor'>,
  given: readonly ConfigDocument[],
  organization: string | undefined,
  isPruned: boolean,
): Promise<PreparedDocuments> {
  const organizationId = organizationOf(context, given, organization)
  rejectMixedOwners(given)
  const documents = given.map((document) => ownedDocument(context, document, organizationId))
  const drafting = await createDraftState(context, organizationId)
  await nextSlice()
  const changes: Change[] = []
  const drafts = new Map<string, Draft>()
  for (const kind of kinds) {
    const having = given.filter((document) => document[kind] !== undefined)
    if (having.length === 0) continue
    if (context.actor.kind === 'key' && recordOf(kind).isCommon === true)
      throw new Fault('forbidden', `${kind} belong to the installation: change them with the command, on the server`)
    const planned = await planKind(drafting, kind, having)
    changes.push(...planned.changes)
    for (const draft of planned.drafted) drafts.set(keyOf(kind, draft.name), draft)
    if (kind === 'issuers') checkUrls(drafting, changes, isPruned)
    await nextSlice()
  }
  checkReferences(drafts.values(), changes)
  await checkBudgetCounts(context, drafts, changes, isPruned)
  const draftOf = ({ kind, name }: Change) => drafts.get(keyOf(kind, name))
  await rejectHarmfulIssuers(drafting, changes, isPruned)
  const review = await reviewPolicies(drafting, changes, draftOf)
  const scopes = documents.map(({ owner, locks }) => ({ organizationId, owner, locks }))
  const fingerprint = await fingerprintOf(scopes, changes)
  await nextSlice()
  const policies = new Map(
    [...drafts.values()].flatMap(({ policy }) => (policy ? [[policy.name, policy] as const] : [])),
  )
  const { users } = drafting
  return {
    ...review,
    ...{ organizationId, documents, draftOf, fingerprint, users },
    changes: addAffected(context, changes, policies),
  }
}

function ownedDocument(
  { registry }: Needs<'registry'>,
  { owner: named, owner_locks }: ConfigDocument,
  organizationId: string,
): OwnedDocument {
  const owner = named ?? null
  const isLocked = owner_locks === true
  if (isLocked && owner === null) throw new Fault('invalid', 'owner_locks requires an owner: add owner to the document')
  const applied = [...registry.configDocuments.values()].find(
    (row) => row.organizationId === organizationId && row.owner === owner,
  )
  const before = applied?.locked ?? false
  return { owner, applied, isLocked, locks: before === isLocked ? undefined : { before, after: isLocked } }
}

/** A forgotten owner would make a document an edit by hand, beside documents that own what they name. */
function rejectMixedOwners(documents: readonly ConfigDocument[]): void {
  if (documents.length < 2) return
  const owners = documents.map(({ owner }) => owner)
  if (owners.includes(undefined))
    throw new Fault('invalid', 'One of several documents has no owner: add owner to it, or send it alone')
  const twice = owners.find((owner, index) => owners.indexOf(owner) !== index)
  if (twice !== undefined)
    throw new Fault('invalid', `Two documents have the owner ${JSON.stringify(twice)}: join them into one`)
}

/** The collections of one kind in all documents that have it. */
async function planKind(
  drafting: DraftState,
  kind: Kind,
  documents: readonly ConfigDocument[],
): Promise<{ drafted: NamedDraft[]; changes: Change[] }> {
  const saved = await collections[kind].read(drafting.context, drafting.organizationId)
  const savedByName = new Map(saved.map((each) => [each.name, each]))
  const drafted = new Map<string, NamedDraft>()
  const parts: { owner: string | null; wanted: NamedDraft[] }[] = []
  for (const { owner = null, [kind]: entries = [] } of documents) {
    const wanted = await draftAll({ ...drafting, owner }, kind, entries, savedByName, drafted)
    parts.push({ owner, wanted })
  }
  const together = { owners: new Set(parts.map(({ owner }) => owner)), names: new Set(drafted.keys()) }
  const changes: Change[] = []
  for (const { owner, wanted } of parts) {
    const planned = await planCollection(kind, wanted, saved, owner, together)
    changes.push(...(owner === null ? planned : planned.map((change) => ({ ...change, owner }))))
  }
  return { drafted: [...drafted.values()], changes }
}

function keyOf(kind: Kind, name: string): string {
  return `${kind} ${name}`
}

/** All documents are for one organization. */
function organizationOf(
  { registry }: Needs<'registry'>,
  documents: readonly ConfigDocument[],
  organization?: string,
): string {
  const named = documents.flatMap((document) => document.organization ?? [])
  const { id, name } = findOrganization(registry, organization ?? named[0])
  const other = named.find((each) => each !== id && each !== name)
  if (other !== undefined) throw new Fault('invalid', `The document is for the organization ${JSON.stringify(other)}`)
  return id
}

/** `owner`: of the document that has the entry. */
type NamedDraft = Draft & { name: string; owner: string | null }

/** Adds each draft to `all`, which has those of earlier documents. */
async function draftAll(
  drafting: DraftState,
  kind: Kind,
  entries: readonly Entry[],
  saved: ReadonlyMap<string, SavedEntry>,
  all: Map<string, NamedDraft>,
): Promise<NamedDraft[]> {
  const drafted: NamedDraft[] = []
  const pace = createPace()
  for (const entry of entries) {
    const name = kindRecords[kind].nameOf(entry)
    try {
      const other = all.get(name)
      if (other !== undefined) throw namedTwice(drafting.owner, other.owner)
      const draft = {
        ...(await collections[kind].draft(drafting, entry, saved.get(name))),
        name,
        owner: drafting.owner,
      }
      drafted.push(draft)
      all.set(name, draft)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      throw new Fault(error.code, `${kind} ${JSON.stringify(name)}: ${error.message}`, { cause: error })
    }
    await pace()
  }
  return drafted
}

function namedTwice(owner: string | null, other: string | null): Fault {
  const where =
    owner === other
      ? 'in the document twice'
      : `in the documents of ${JSON.stringify(other)} and ${JSON.stringify(owner)}`
  return new Fault('invalid', `it is ${where}; remove one of the two`)
}

/** One issuer URL means one issuer, after the change. */
function checkUrls({ issuers }: DraftState, changes: readonly Change[], isPruned: boolean): void {
  const deleted = new Set(changes.flatMap(({ action, name }) => (isPruned && action === 'delete' ? [name] : [])))
  const names = new Map<string, string>()
  for (const { name, issuerUrl } of issuers.values()) {
    if (deleted.has(name)) continue
    const other = names.get(issuerUrl)
    if (other !== undefined) throw issuerUrlTaken(other, issuerUrl)
    names.set(issuerUrl, name)
  }
}

/** A policy must not keep an issuer or a key that the document gives up. */
function checkReferences(drafts: Iterable<Draft>, changes: readonly Change[]): void {
  const deleted = new Map(changes.flatMap((change) => (change.action === 'delete' ? [[change.id, change]] : [])))
  for (const { policy } of drafts) {
    const named = policy && (deleted.get(policy.issuerId) ?? deleted.get(policy.keyId))
    if (policy !== undefined && named !== undefined)
      throw new Fault(
        'invalid',
        `policies ${JSON.stringify(policy.name)}: the document no longer has ${named.kind} ${JSON.stringify(named.name)}`,
      )
  }
}

/** No key has too many budgets, after the change. */
async function checkBudgetCounts(
  { registry }: DraftContext,
  drafts: ReadonlyMap<string, Draft>,
  changes: readonly Change[],
  isPruned: boolean,
): Promise<void> {
  const changed = changes.filter(({ kind }) => kind === 'keys' || kind === 'budgets')
  if (changed.length === 0) return
  const drafted = changed.flatMap((change) => drafts.get(keyOf(change.kind, change.name)) ?? [])
  const replaced = new Set(changed.flatMap(({ action, id }) => (action !== 'delete' || isPruned ? (id ?? []) : [])))
  const kept = ({ id }: { id: string }) => !replaced.has(id)
  await rejectCrowd(
    [...[...registry.budgets.values()].filter(kept), ...drafted.flatMap(({ budget }) => budget ?? [])],
    keysOf(registry, kept, drafted),
  )
}

function* keysOf(
  { keys }: DraftContext['registry'],
  kept: (row: { id: string }) => boolean,
  drafted: readonly Draft[],
) {
  for (const { key } of drafted) if (key !== undefined) yield key
  for (const key of keys.values()) if (kept(key)) yield key
}
