// What a configuration document would change: each object that it names is compared with what is saved, field by field.
import { createHash } from 'node:crypto'
import { createPace, mapInSlices } from '../../../db/read/pace.ts'
import { canonicalText, isSame } from '../../values/same-json.ts'
import { defaultOf, type Entry, type Kind, recordOf } from '../kinds/kinds.ts'

export const actions = ['create', 'update', 'delete', 'adopt', 'conflict'] as const
export type Action = (typeof actions)[number]

/** A saved object. `managedBy` is the owner of the document that it was made from. */
export type SavedEntry = { name: string; id: string; managedBy: string | null; updatedAt: number; entry: Entry }
/** `was`: what the saved entry says differently, although the names are equal. */
export type WantedEntry = { name: string; entry: Entry; was?: Entry }

export type FieldChange = { field: string; before?: unknown; after?: unknown }
export type Change = {
  kind: Kind
  name: string
  action: Action
  /** Of a saved object. */
  id?: string
  updatedAt?: number
  managedBy?: string
  /** Of the document. */
  owner?: string
  fields: FieldChange[]
  /** Names of policies that become inactive. */
  policiesAffected?: string[]
}

/** The collections of one kind in the documents that are planned together: their owners, and all names in them. */
export type PlannedDocuments = { owners: ReadonlySet<string | null>; names: ReadonlySet<string> }

/**
 * The changes of one collection, by name. A document with an owner reports what was made by hand (`adopt`) or by another owner
 * (`conflict`) instead of updating it, and deletes what its owner has and it no longer names. What another document of the same plan gives
 * up is adopted instead: it moves, and is not deleted. A document without an owner is an edit by hand: it changes what it names and
 * deletes nothing.
 */
export async function planCollection(
  kind: Kind,
  wanted: readonly WantedEntry[],
  saved: readonly SavedEntry[],
  owner: string | null,
  { owners, names }: PlannedDocuments = { owners: new Set(), names: new Set(wanted.map(({ name }) => name)) },
): Promise<Change[]> {
  const savedByName = new Map(saved.map((each) => [each.name, each]))
  const actionOn = (managedBy: string | null): Action => {
    if (owner === null || managedBy === owner) return 'update'
    return managedBy === null || owners.has(managedBy) ? 'adopt' : 'conflict'
  }
  const planned = await mapInSlices(wanted, (each) => planOne(kind, each, savedByName.get(each.name), actionOn))
  const changes = planned.flat()
  const dropped = saved.filter(({ name, managedBy }) => owner !== null && managedBy === owner && !names.has(name))
  const deleted = dropped.map((each): Change => ({ ...identityOf(each), kind, action: 'delete', fields: [] }))
  return [...changes, ...deleted].toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

function planOne(
  kind: Kind,
  { name, entry, was }: WantedEntry,
  saved: SavedEntry | undefined,
  actionOn: (managedBy: string | null) => Action,
): Change[] {
  if (saved === undefined) return [{ kind, name, action: 'create', fields: compare(kind, {}, entry, () => undefined) }]
  const fields = compare(kind, { ...saved.entry, ...was }, entry, (field) => defaultOf(kind, field))
  const action = actionOn(saved.managedBy)
  if (action === 'update' && fields.length === 0) return []
  return [{ ...identityOf(saved), kind, action, fields }]
}

function identityOf({ name, id, updatedAt, managedBy }: SavedEntry): Pick<Change, 'name' | 'id' | 'updatedAt'> {
  return { name, id, updatedAt, ...(managedBy === null ? {} : { managedBy }) }
}

/** A value that is left out is shown as what it means. Of a secret, only that it changes. */
function compare(kind: Kind, before: Entry, after: Entry, meaningOf: (field: string) => unknown): FieldChange[] {
  const { fields } = recordOf(kind)
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((field) => !isSame(before[field], after[field]))
    .toSorted()
    .map((field) =>
      fields[field]?.isSecret === true
        ? { field }
        : { field, before: before[field] ?? meaningOf(field), after: after[field] ?? meaningOf(field) },
    )
}

/** Whether the document locks what its owner has, where that changes. */
export type LockChange = { before: boolean; after: boolean } | undefined

/** Whose plan it is. `locks`: whether the document locks what its owner has, where that changes. */
export type PlanScope = { organizationId: string; owner: string | null; locks: LockChange }

/** A hash that differs when the plan or one of its scopes differs, or an object that it changes was saved since. */
export async function fingerprintOf(scopes: readonly PlanScope[], changes: readonly Change[]): Promise<string> {
  const hash = createHash('sha256')
  const pace = createPace()
  for (const part of [...scopes, ...changes]) {
    hash.update(`${canonicalText(part)}\n`)
    await pace()
  }
  return hash.digest('hex')
}
