// From a document to what it would change: every entry is drafted and checked, compared with what is saved, and its policies are linted.
import { createPace } from '../../../db/pace.ts'
import type { ConfigDocument as AppliedDocument } from '../../../db/schema.ts'
import { Fault } from '../../fault.ts'
import { issuerUrlTaken } from '../issuers/issuers.ts'
import type { OperationContext } from '../operation/operation.ts'
import { findOrganization } from '../operation/references.ts'
import { type ConfigDocument, commonKinds, type Entry, type EntryOf, type Kind, kinds, nameOf } from './document.ts'
import {
  createDrafting,
  type Draft,
  type Drafting,
  draftIssuerEntry,
  draftKeyEntry,
  draftPolicyEntry,
  draftPriceEntry,
} from './drafts.ts'
import { readSaved } from './entries.ts'
import { draftPresetEntry, draftUpstreamEntry } from './inference-drafts.ts'
import { type Change, fingerprintOf, type LockChange, planCollection, type Saved } from './plan.ts'
import { addAffected, type Review, rejectHarmfulIssuers, reviewPolicies } from './review.ts'

export type Prepared = Review & {
  organizationId: string
  owner: string | null
  /** The document of this owner that was applied last. */
  applied: Readonly<AppliedDocument> | undefined
  isLocked: boolean
  locks: LockChange
  changes: Change[]
  /** By kind and name. */
  draftOf: (change: Change) => Draft | undefined
  /** Differs when the changes differ, or when an object that they change was saved since. */
  fingerprint: string
  owners: Drafting['owners']
}

/**
 * `isPruned`: what the document no longer names will be deleted.
 * @throws Fault `invalid`, `not_found` or `conflict` that names the entry which cannot be saved
 */
export async function prepare(
  context: OperationContext,
  document: ConfigDocument,
  organization: string | undefined,
  isPruned: boolean,
): Promise<Prepared> {
  const organizationId = organizationOf(context, document, organization)
  const owner = document.owner ?? null
  const isLocked = document.owner_locks === true
  if (isLocked && owner === null) throw new Fault('invalid', 'owner_locks requires an owner: add owner to the document')
  const applied = [...context.registry.configDocuments.values()].find(
    (row) => row.organizationId === organizationId && row.owner === owner,
  )
  const before = applied?.locked ?? false
  const locks = before === isLocked ? undefined : { before, after: isLocked }
  const drafting = await createDrafting(context, organizationId, owner)
  const changes: Change[] = []
  const drafts = new Map<string, Draft>()
  for (const kind of kinds) {
    const entries = document[kind]
    if (entries === undefined) continue
    if (context.actor.kind === 'key' && commonKinds.includes(kind))
      throw new Fault('forbidden', `${kind} belong to the installation: change them with the command, on the server`)
    const saved = await readSaved(context, kind, organizationId)
    const drafted = await draftAll(drafting, kind, entries, saved)
    changes.push(...(await planCollection(kind, drafted, saved, owner)))
    for (const draft of drafted) drafts.set(keyOf(kind, draft.name), draft)
    if (kind === 'issuers') checkUrls(drafting, changes, isPruned)
  }
  checkReferences(drafts.values(), changes)
  const draftOf = ({ kind, name }: Change) => drafts.get(keyOf(kind, name))
  await rejectHarmfulIssuers(drafting, changes, isPruned)
  const review = await reviewPolicies(drafting, changes, draftOf)
  const fingerprint = await fingerprintOf({ organizationId, owner, locks }, changes)
  const policies = new Map(
    [...drafts.values()].flatMap(({ policy }) => (policy ? [[policy.name, policy] as const] : [])),
  )
  const { owners } = drafting
  return {
    ...review,
    ...{ organizationId, owner, applied, isLocked, locks },
    changes: addAffected(context, changes, policies),
    draftOf,
    fingerprint,
    owners,
  }
}

function keyOf(kind: Kind, name: string): string {
  return `${kind} ${name}`
}

function organizationOf({ registry }: OperationContext, document: ConfigDocument, organization?: string): string {
  const { id, name } = findOrganization(registry, organization ?? document.organization)
  if (document.organization !== undefined && document.organization !== id && document.organization !== name)
    throw new Fault('invalid', `The document is for the organization ${JSON.stringify(document.organization)}`)
  return id
}

type NamedDraft = Draft & { name: string }

async function draftAll(
  drafting: Drafting,
  kind: Kind,
  entries: readonly Entry[],
  saved: readonly Saved[],
): Promise<NamedDraft[]> {
  const savedByName = new Map(saved.map((each) => [each.name, each]))
  const drafted = new Map<string, NamedDraft>()
  const pace = createPace()
  for (const entry of entries) {
    const name = nameOf(kind, entry)
    try {
      if (drafted.has(name)) throw new Fault('invalid', 'it is in the document twice; remove one of the two')
      drafted.set(name, { ...(await draftOne(drafting, kind, entry, savedByName.get(name))), name })
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      throw new Fault(error.code, `${kind} ${JSON.stringify(name)}: ${error.message}`, { cause: error })
    }
    await pace()
  }
  return [...drafted.values()]
}

/** The shape of the document has checked that the entry is one of this kind. */
async function draftOne(drafting: Drafting, kind: Kind, entry: Entry, saved: Saved | undefined): Promise<Draft> {
  switch (kind) {
    case 'issuers':
      return draftIssuerEntry(drafting, entry as EntryOf<'issuers'>, saved)
    case 'keys':
      return draftKeyEntry(drafting, entry as EntryOf<'keys'>, saved)
    case 'policies':
      return draftPolicyEntry(drafting, entry as EntryOf<'policies'>, saved)
    case 'presets':
      return draftPresetEntry(drafting, entry as EntryOf<'presets'>, saved)
    case 'upstreams':
      return draftUpstreamEntry(drafting, entry as EntryOf<'upstreams'>, saved)
    case 'prices':
      return draftPriceEntry(drafting, entry as EntryOf<'prices'>, saved)
  }
}

/** One issuer URL means one issuer, after the change. */
function checkUrls({ issuers }: Drafting, changes: readonly Change[], isPruned: boolean): void {
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
