// What a budget applies to: ids in the database, names for people. Ids stay when something is renamed.
import type { BudgetScope } from '../../../db/schema/budget-schema.ts'

const named = ['workspaces', 'keys', 'policies'] as const
type ReferencedKind = (typeof named)[number]
/** By kind, from a name or an id to the other of the two. */
export type ScopeNames = Record<ReferencedKind, (reference: string) => string>

/** Replaces the names of a scope, or its ids. Lists become sets, and an empty scope is everything. */
export function mapScope(scope: BudgetScope | null | undefined, by: ScopeNames): BudgetScope | null {
  if (scope === null || scope === undefined) return null
  const mapped: BudgetScope = { ...scope }
  for (const kind of named) {
    const list = scope[kind]
    if (list !== undefined) mapped[kind] = [...new Set(list.map(by[kind]))].toSorted()
  }
  if (scope.models !== undefined) mapped.models = [...new Set(scope.models)].toSorted()
  if (scope.labels !== undefined && Object.keys(scope.labels).length === 0) delete mapped.labels
  return Object.keys(mapped).length === 0 ? null : mapped
}
