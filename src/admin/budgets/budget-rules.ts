// What a budget must satisfy beside the shapes of its fields.
import type { Budget } from '../../../db/schema/budget-schema.ts'
import { Fault } from '../../fault.ts'
import type { Registry } from '../../registry/registry.ts'
import { policiesNaming } from '../../registry/trust-rows.ts'
import { compileBudget } from '../../spending/budget.ts'
import { type NamedKey, rejectCrowd } from '../operation/budget-count.ts'

/** @throws Fault `invalid` for a budget that cannot work as it says */
export function checkBudget(registry: Registry, row: Budget): void {
  const { each, overrides, windows, concurrentRequests } = row
  if (windows.length === 0 && concurrentRequests === null)
    throw new Fault('invalid', 'A budget limits something: set windows or concurrent_requests')
  if (overrides !== null && each === null)
    throw new Fault('invalid', 'overrides are for single values of each: set each, or remove overrides')
  const periods = windows.map(({ per }) => per)
  for (const [value, own] of Object.entries(overrides ?? {}))
    for (const { per } of own)
      if (!periods.includes(per))
        throw new Fault(
          'invalid',
          `The override for ${JSON.stringify(value)} has a ${per}, which windows lack: add it to windows`,
        )
  if (each === 'session' && periods.includes('lifetime'))
    throw new Fault('invalid', 'The sessions of old requests are archived, so each session has no lifetime: use month')
  rejectUnknowable(registry, row)
}

/** A key that no policy targets has calls without a policy, and without an attribution unless a header says it. */
function rejectUnknowable(registry: Registry, { each, appliesTo }: Budget): void {
  if ((each !== 'policy' && each !== 'attribution') || appliesTo?.keys === undefined) return
  for (const id of appliesTo.keys) {
    const key = registry.keys.get(id)
    if (key === undefined || (each === 'attribution' && key.attributeFromHeader !== null)) continue
    if (!policiesNaming(registry, 'keyId', new Set([id])).next().done) continue
    throw new Fault(
      'invalid',
      `No policy targets the key ${JSON.stringify(key.name)}, so its calls have no ${each}: use each key, or leave the key out`,
    )
  }
}

/** As `rejectCrowd`, of the keys that a new or changed budget applies to. */
export async function rejectCrowdOf({ budgets, keys }: Registry, row: Budget): Promise<void> {
  const { appliesToKey } = compileBudget(row, null)
  const all = [...[...budgets.values()].filter(({ id }) => id !== row.id), row]
  if (row.enabled) await rejectCrowd(all, filterKeys(keys.values(), appliesToKey))
}

function* filterKeys(keys: Iterable<NamedKey>, isWanted: (key: NamedKey) => boolean): Iterable<NamedKey> {
  for (const key of keys) if (isWanted(key)) yield key
}

const daysOf = { hour: 1 / 24, day: 1, week: 7, month: 31, lifetime: Number.POSITIVE_INFINITY } as const

/** Windows that can never be reached, since a longer one allows less. */
export function findContradictions({ windows }: Pick<Budget, 'windows'>): string[] {
  return windows.flatMap((short) =>
    windows.flatMap((long) =>
      daysOf[short.per] >= daysOf[long.per]
        ? []
        : (['usd', 'tokens', 'requests'] as const).flatMap((unit) =>
            (short[unit] ?? 0) > (long[unit] ?? Number.POSITIVE_INFINITY)
              ? [`The ${short.per} allows more ${unit} than the ${long.per}, so it is never reached`]
              : [],
          ),
    ),
  )
}
