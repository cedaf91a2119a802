// The keys, policies and issuers that rows of a report name, deleted ones included.
import type { Issuer } from '../../federation/issuer/issuer.ts'
import type { Policy } from '../../federation/policy.ts'
import type { Key } from '../../keys/api-key.ts'
import type { Registry } from '../../registry/registry.ts'

/** Finds a row by its id; undefined for null. */
type Find<Row> = (id: string | null) => Promise<Row | undefined>
export type RowNames = { key: Find<Key>; policy: Find<Policy>; issuer: Find<Issuer> }

/** For one report: reads each deleted row once. */
export function createRowNames({ keys, policies, issuers, deleted }: Registry): RowNames {
  return {
    key: createFind(keys, deleted.key),
    policy: createFind(policies, deleted.policy),
    issuer: createFind(issuers, deleted.issuer),
  }
}

function createFind<Row>(
  rows: ReadonlyMap<string, Row>,
  readDeleted: (id: string) => Promise<Row | undefined>,
): Find<Row> {
  const read = new Map<string, Row | undefined>()
  return async (id) => {
    if (id === null) return undefined
    const known = rows.get(id)
    if (known !== undefined) return known
    if (!read.has(id)) read.set(id, await readDeleted(id))
    return read.get(id)
  }
}
