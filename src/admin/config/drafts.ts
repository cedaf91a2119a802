// The rows that the entries of a document would save, checked as the operations on each kind check them. Nothing is written here.

import type { Budget } from '../../../db/schema/budget-schema.ts'
import type { ApiKey, Issuer, Policy } from '../../../db/schema/schema.ts'
import { apiKeyBulks } from '../../../db/tables/api-keys.ts'
import { insertIssuer, updateIssuer } from '../../../db/tables/issuers.ts'
import { listWorkspaces } from '../../../db/tables/organizations.ts'
import { policyBulks } from '../../../db/tables/policies.ts'
import type { Bulk, Statement } from '../../../db/write/rows.ts'
import { Fault } from '../../fault.ts'
import { labelPinned } from '../../keys/api-key.ts'
import { findOrDraftUser, type UserDraft } from '../../keys/users.ts'
import { isSame } from '../../values/same-json.ts'
import { checkIssuerFields, draftIssuer, rejectContradiction } from '../issuers/issuers.ts'
import { keptKeys } from '../issuers/key-columns.ts'
import { checkBounds, rejectExpired } from '../keys/key-input.ts'
import { draftApiKey } from '../keys/keys.ts'
import { newColumnsOf } from '../kinds/fields.ts'
import { keyFields } from '../kinds/key.ts'
import type { Entry } from '../kinds/kinds.ts'
import { rejectHeaderOfTarget, rejectTargetWithHeader } from '../operation/attribution-header.ts'
import type { Needs } from '../operation/context.ts'
import { checkNameIsFree, notFound } from '../operation/references.ts'
import { draftPolicy } from '../policies/policies.ts'
import { checkPolicyFields } from '../policies/policy-edit.ts'
import { checkSignInPolicy } from '../policies/sign-in-policy.ts'
import type { EntryOf } from './document.ts'
import { issuerEntry, keyEntry, oursIn, policyEntry } from './entries.ts'
import { pageSecretOf } from './other-secret.ts'
import type { SavedEntry } from './plan.ts'

/** What an entry would save. `secret` is the text of a new key. */
export type Draft = {
  entry: Entry
  /** What the saved entry says differently, although the names are equal. */
  was?: Entry
  id: string
  save: () => (Statement | Bulk)[]
  policy?: Policy
  key?: ApiKey
  budget?: Budget
  secret?: string
}

/** What drafting an entry of any kind needs. */
export type DraftContext = Needs<'config' | 'orm' | 'registry' | 'presets' | 'now' | 'warn'>

/** What drafting needs to know: the organization, the owner of the document, and what was drafted before, also of other documents. */
export type DraftState = {
  context: DraftContext
  organizationId: string
  owner: string | null
  issuers: Map<string, Issuer>
  /** Ids of keys by name; a document makes inference keys alone. */
  keyIds: Map<string, string>
  /** Ids of policies by name. */
  policyIds: Map<string, string>
  /** The keys that take whose usage a call is from a header, by id. */
  frontEnds: Map<string, Pick<ApiKey, 'name' | 'attributeFromHeader'>>
  workspaceIds: Map<string, string>
  users: Map<string, UserDraft>
  /** Names of the new keys that were made elsewhere, by hash. */
  hashes: Map<string, string>
  /** How many presets a workspace will have, by its id. */
  presetCounts: Map<string, number>
  now: number
}

export async function createDraftState(context: DraftContext, organizationId: string): Promise<DraftState> {
  const { registry, orm } = context
  const issuers = oursIn(registry.issuers.values(), organizationId)
  const keys = oursIn(registry.keys.values(), organizationId)
  const workspaces = await listWorkspaces(orm, organizationId)
  return {
    context,
    organizationId,
    owner: null,
    issuers: new Map(issuers.map((row) => [row.name, row])),
    keyIds: new Map(keys.map(({ name, id }) => [name, id])),
    policyIds: new Map(oursIn(registry.policies.values(), organizationId).map(({ name, id }) => [name, id])),
    frontEnds: new Map(keys.flatMap((key) => (key.attributeFromHeader === null ? [] : [[key.id, key]]))),
    workspaceIds: new Map(workspaces.map(({ name, id }) => [name, id])),
    users: new Map(),
    hashes: new Map(),
    presetCounts: new Map(),
    now: context.now(),
  }
}

/** An edit by hand keeps the owner of an object. */
export function ownerOf({ owner }: Pick<DraftState, 'owner'>, saved: SavedEntry | undefined): string | null {
  return owner ?? saved?.managedBy ?? null
}

/** The id of a user, found or drafted once for the whole document. */
export async function userIdOf({ context, organizationId, users }: DraftState, name: string): Promise<string> {
  const known = users.get(name)
  const draft = known ?? (await findOrDraftUser(context, organizationId, name))
  users.set(name, draft)
  return draft.user.id
}

export function workspaceIdOf({ workspaceIds }: DraftState, name = 'default'): string {
  const id = workspaceIds.get(name)
  if (id === undefined) throw notFound('workspace', name)
  return id
}

type RowIdentity = { id: string; createdAt: number }

/** What an edit keeps of a row. */
function identityOf(row: RowIdentity | undefined): Partial<RowIdentity> {
  return row === undefined ? {} : { id: row.id, createdAt: row.createdAt }
}

export async function draftIssuerEntry(
  drafting: DraftState,
  wanted: EntryOf<'issuers'>,
  saved: SavedEntry | undefined,
): Promise<Draft> {
  const { context, organizationId } = drafting
  const before = saved && context.registry.issuers.get(saved.id)
  const drafted = draftIssuer(context, wanted, organizationId)
  const kept = { ...identityOf(before), ...keptKeys(drafted, before), managedBy: ownerOf(drafting, saved) }
  const secret = await pageSecretOf(context, kept.id ?? drafted.id, before, wanted.page_secret)
  const row: Issuer = { ...drafted, ...kept, ...secret.columns }
  const entry = { ...issuerEntry(row, context.registry), ...secret.entry }
  if (!isSame(entry, saved?.entry)) {
    checkIssuerFields(context, row)
    await rejectContradiction(row)
  }
  drafting.issuers.set(row.name, row)
  const { orm } = context
  return { entry, id: row.id, save: () => [before ? updateIssuer(orm, row.id, row) : insertIssuer(orm, row)] }
}

export async function draftKeyEntry(
  drafting: DraftState,
  wanted: EntryOf<'keys'>,
  saved: SavedEntry | undefined,
): Promise<Draft> {
  const { context, organizationId, now } = drafting
  const { registry } = context
  const names = { owner: wanted.owner ?? 'admin', workspace: wanted.workspace ?? 'default' }
  // A key that has expired stays in a document.
  const isKept = wanted.expires_at instanceof Date && saved?.entry.expires_at === wanted.expires_at.toISOString()
  rejectExpired(wanted, isKept ? 0 : now)
  const managedBy = ownerOf(drafting, saved)
  const before = saved && registry.keys.get(saved.id)
  if (before !== undefined && saved !== undefined) {
    const fields = { ...newColumnsOf<ApiKey>(keyFields, wanted), managedBy }
    const row: ApiKey = { ...before, ...fields }
    const entry = keyEntry(row, names)
    if (!isSame([entry.owner, entry.workspace], [saved.entry.owner, saved.entry.workspace]))
      throw new Fault('conflict', 'the user and the workspace of a key cannot change; choose another name')
    if (wanted.hash !== undefined && wanted.hash !== before.hash)
      throw new Fault('conflict', 'the saved key has another hash, which cannot change; choose another name')
    if (!isSame(entry, saved.entry)) {
      checkBounds(row, wanted)
      rejectHeaderOfTarget(registry, row)
    }
    noteFrontEnd(drafting, row)
    return { entry, id: row.id, key: row, save: () => [apiKeyBulks.update({ id: row.id, ...fields, updatedAt: now })] }
  }
  checkNameIsFree('key', registry.keys, wanted.name, organizationId)
  const workspaceId = workspaceIdOf(drafting, names.workspace)
  const ids = { organizationId, workspaceId, userId: await userIdOf(drafting, names.owner) }
  const { row: drafted, text } = draftApiKey(ids, wanted, now)
  const pinned = await pinnedTo(drafting, wanted)
  const row = { ...drafted, ...pinned, managedBy }
  checkBounds(row, wanted)
  drafting.keyIds.set(row.name, row.id)
  noteFrontEnd(drafting, row)
  const entry = { ...keyEntry(row, names), ...(pinned === undefined ? {} : { hash: pinned.hash }) }
  const save = () => [apiKeyBulks.insert(row)]
  return { entry, id: row.id, key: row, save, ...(pinned === undefined ? { secret: text } : {}) }
}

function noteFrontEnd({ frontEnds }: DraftState, row: ApiKey): void {
  if (row.attributeFromHeader === null) frontEnds.delete(row.id)
  else frontEnds.set(row.id, row)
}

/**
 * The columns of a key that was made elsewhere: its hash, and a label that shows no part of it. A hash can be pinned
 * once in the installation, and belongs to the organization that pinned it first: a hash alone proves nothing.
 */
async function pinnedTo({ context, organizationId, hashes }: DraftState, { name, hash }: EntryOf<'keys'>) {
  if (hash === undefined) return undefined
  const { keysByHash, deleted } = context.registry
  const twin = hashes.get(hash)
  if (twin !== undefined) throw new Fault('conflict', `the key ${JSON.stringify(twin)} has this hash; make another key`)
  const other = keysByHash.get(hash) ?? (await deleted.keyWithHash(hash))
  if (other !== undefined) throw new Fault('conflict', takenHash(other, organizationId))
  hashes.set(hash, name)
  return { hash, label: labelPinned(hash) }
}

/** Names no key of another organization. */
function takenHash({ name, organizationId, deletedAt }: Readonly<ApiKey>, ownId: string): string {
  if (organizationId !== ownId)
    return 'another organization has, or had, a key with this hash, and calls with it would be theirs: make another key, pin it, and only then show its hash or use it'
  return `the ${deletedAt === null ? '' : 'deleted '}key ${JSON.stringify(name)} has this hash; make another key`
}

export function draftPolicyEntry(
  drafting: DraftState,
  wanted: EntryOf<'policies'>,
  saved: SavedEntry | undefined,
): Draft {
  const { context, organizationId, now } = drafting
  const { registry } = context
  const before = saved && registry.policies.get(saved.id)
  // A policy may name an issuer or a key that was deleted. It keeps it until the document names another.
  const issuerId =
    drafting.issuers.get(wanted.issuer)?.id ?? (saved?.entry.issuer === wanted.issuer ? before?.issuerId : undefined)
  const keyId = drafting.keyIds.get(wanted.key) ?? (saved?.entry.key === wanted.key ? before?.keyId : undefined)
  if (issuerId === undefined) throw new Fault('not_found', `there is no issuer ${JSON.stringify(wanted.issuer)}`)
  if (keyId === undefined) throw new Fault('not_found', `there is no key ${JSON.stringify(wanted.key)}`)
  const row: Policy = {
    ...draftPolicy(wanted, { organizationId, issuerId, keyId }, now),
    ...identityOf(before),
    enabled: wanted.enabled ?? true,
    managedBy: ownerOf(drafting, saved),
  }
  const entry = policyEntry(row, { issuer: wanted.issuer, key: wanted.key })
  if (!isSame(entry, saved?.entry)) {
    checkPolicyFields(row)
    checkSignInPolicy(row, registry.keys.get(keyId), drafting.issuers.get(wanted.issuer))
    rejectTargetWithHeader(drafting.frontEnds.get(keyId) ?? { name: wanted.key, attributeFromHeader: null })
  }
  drafting.policyIds.set(row.name, row.id)
  const save = () => [before ? policyBulks.update(row) : policyBulks.insert(row)]
  const was = saved && before ? namesakesOf(saved, before, wanted, row) : {}
  return { entry, was, id: row.id, save, policy: row }
}

/** Marks an issuer or a key that the saved policy has, and that was deleted, if another one has its name now. */
function namesakesOf({ entry }: SavedEntry, before: Policy, wanted: EntryOf<'policies'>, row: Policy): Entry {
  const isIssuer = entry.issuer === wanted.issuer && before.issuerId !== row.issuerId
  const isKey = entry.key === wanted.key && before.keyId !== row.keyId
  return {
    ...(isIssuer ? { issuer: `${wanted.issuer} (deleted)` } : {}),
    ...(isKey ? { key: `${wanted.key} (deleted)` } : {}),
  }
}
