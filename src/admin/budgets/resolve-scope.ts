// What a budget applies to, between the names that people use and the ids that are saved; and the names of what counters are for.
import type { BudgetScope } from '../../../db/schema/budget-schema.ts'
import { listWorkspaces } from '../../../db/tables/organizations.ts'
import type { Needs } from '../operation/context.ts'
import { findKey, findPolicy, notFound } from '../operation/references.ts'
import { mapScope } from './scope.ts'

export async function workspaceNames({ orm }: Needs<'orm'>, organizationId: string): Promise<Map<string, string>> {
  return new Map((await listWorkspaces(orm, organizationId)).map(({ id, name }) => [id, name]))
}

/** The names in a scope as ids. @throws Fault `not_found` */
export async function resolveScope(
  context: Needs<'orm' | 'registry'>,
  organizationId: string,
  scope: BudgetScope | null | undefined,
): Promise<BudgetScope | null> {
  const { registry } = context
  const names = await workspaceNames(context, organizationId)
  const ids = new Map([...names].map(([id, name]) => [name, id]))
  return mapScope(scope, {
    workspaces: (reference) => {
      const id = names.has(reference) ? reference : ids.get(reference)
      if (id === undefined) throw notFound('workspace', reference)
      return id
    },
    keys: (reference) => findKey(registry, reference, organizationId).id,
    policies: (reference) => findPolicy(registry, reference, organizationId).id,
  })
}

/** The name of what a counter is for, where its value is an id. Deleted keys and policies have none. */
export function nameOfValue({ registry }: Needs<'registry'>, each: string | null, value: string): string | undefined {
  if (each === 'key') return registry.keys.get(value)?.name
  if (each === 'policy') return registry.policies.get(value)?.name
  return undefined
}
