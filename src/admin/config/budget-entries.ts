// Budgets as entries of a document: what is saved, and what an entry would save.

import type { Budget } from '../../../db/schema/budget-schema.ts'
import { insertBudget, updateBudget } from '../../../db/tables/budgets.ts'
import { listWorkspaces } from '../../../db/tables/organizations.ts'
import { isSame } from '../../values/same-json.ts'
import { checkBudget, findContradictions } from '../budgets/budget-rules.ts'
import { draftBudget } from '../budgets/budgets.ts'
import { mapScope, type ScopeNames } from '../budgets/scope.ts'
import { budgetFields } from '../kinds/budget.ts'
import { entryOf } from '../kinds/fields.ts'
import type { Entry } from '../kinds/kinds.ts'
import type { Needs } from '../operation/context.ts'
import { notFound } from '../operation/references.ts'
import type { EntryOf } from './document.ts'
import { type Draft, type DraftState, ownerOf, workspaceIdOf } from './drafts.ts'
import { oursIn } from './entries.ts'
import type { SavedEntry } from './plan.ts'

export async function readBudgets(
  { orm, registry }: Needs<'orm' | 'registry'>,
  organizationId: string,
): Promise<SavedEntry[]> {
  const workspaces = new Map((await listWorkspaces(orm, organizationId)).map(({ id, name }) => [id, name]))
  const names: ScopeNames = {
    workspaces: (id) => workspaces.get(id) ?? id,
    keys: (id) => registry.keys.get(id)?.name ?? id,
    policies: (id) => registry.policies.get(id)?.name ?? id,
  }
  return oursIn(registry.budgets.values(), organizationId).map((row) => {
    const { id, name, managedBy, updatedAt } = row
    return { id, name, managedBy, updatedAt, entry: budgetEntry(row, names) }
  })
}

function budgetEntry(row: Readonly<Budget>, names: ScopeNames): Entry {
  return entryOf(budgetFields, row, { applies_to: mapScope(row.appliesTo, names) })
}

/** Top-ups stay: they are no part of a document. */
export function draftBudgetEntry(
  drafting: DraftState,
  { applies_to, enabled, ...wanted }: EntryOf<'budgets'>,
  saved: SavedEntry | undefined,
): Draft {
  const { context, organizationId, now, keyIds, policyIds } = drafting
  const { registry, orm } = context
  const before = saved && registry.budgets.get(saved.id)
  const scope = mapScope(applies_to, {
    workspaces: (name) => workspaceIdOf(drafting, name),
    keys: idIn(keyIds, 'key'),
    policies: idIn(policyIds, 'policy'),
  })
  const kept = before && { id: before.id, createdAt: before.createdAt, topUps: before.topUps }
  const row: Budget = {
    ...draftBudget(wanted, organizationId, scope, now),
    ...kept,
    enabled: enabled ?? true,
    managedBy: ownerOf(drafting, saved),
  }
  const same: ScopeNames = {
    workspaces: nameIn(drafting.workspaceIds),
    keys: nameIn(keyIds),
    policies: nameIn(policyIds),
  }
  const entry = budgetEntry(row, same)
  if (!isSame(entry, saved?.entry)) {
    checkBudget(registry, row)
    for (const text of findContradictions(row)) context.warn?.(`budgets ${JSON.stringify(row.name)}: ${text}`)
  }
  return {
    entry,
    id: row.id,
    budget: row,
    save: () => [before ? updateBudget(orm, row.id, row) : insertBudget(orm, row)],
  }
}

function idIn(ids: ReadonlyMap<string, string>, kind: string): (name: string) => string {
  const known = new Set(ids.values())
  return (reference) => {
    const id = ids.get(reference) ?? (known.has(reference) ? reference : undefined)
    if (id === undefined) throw notFound(kind, reference)
    return id
  }
}

function nameIn(ids: ReadonlyMap<string, string>): (id: string) => string {
  const names = new Map([...ids].map(([name, id]) => [id, name]))
  return (id) => names.get(id) ?? id
}
