// Finds what an admin names, by id or name, in one organization. Deleted rows are not found.

import type { ApiKey, Organization } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import type { Policy } from '../../federation/policy.ts'
import type { Registry } from '../../registry/registry.ts'
import type { PackedMap } from '../../values/packed-map.ts'
import { referenceShape } from '../../values/shapes.ts'

/** Input of every operation within an organization: its id or name. The default is the only organization, or `default`. */
export const organizationInput = { 'organization?': referenceShape } as const

type NamedRow = { id: string; name: string; organizationId: string; deletedAt: number | null }

export function findOrganization({ organizations }: Registry, reference: string | undefined): Readonly<Organization> {
  const all = [...organizations.values()]
  if (reference === undefined) {
    const chosen = all.length === 1 ? all[0] : all.find(({ name }) => name === 'default')
    if (chosen !== undefined) return chosen
    throw new Fault(
      'invalid',
      `There are several organizations: name one with --organization: ${all.map(({ name }) => name).join(', ')}`,
    )
  }
  const found = all.find(({ id, name }) => id === reference || name === reference)
  if (found === undefined) throw notFound('organization', reference)
  return found
}

export function findKey(registry: Registry, reference: string, organizationId: string): Readonly<ApiKey> {
  const byHash = registry.keysByHash.get(reference)
  const id = byHash?.organizationId === organizationId ? byHash.id : reference
  return findRow(registry, 'key', registry.keys, id, organizationId)
}

/**
 * Finds deleted rows too, for reports: by id or hash, since another row may have the name now. Without an organization, ids are searched
 * in all organizations.
 */
export async function findKeyIdEver(registry: Registry, reference: string, organization?: string): Promise<string> {
  const { keys, keysByHash, deleted } = registry
  const known =
    keys.get(reference) ??
    keysByHash.get(reference) ??
    (await deleted.key(reference)) ??
    (await deleted.keyWithHash(reference))
  return idEver(known, registry, organization, (organizationId) => findKey(registry, reference, organizationId))
}

export async function findIssuerIdEver(registry: Registry, reference: string, organization?: string): Promise<string> {
  const known = registry.issuers.get(reference) ?? (await registry.deleted.issuer(reference))
  return idEver(known, registry, organization, (organizationId) => findIssuer(registry, reference, organizationId))
}

export async function findPolicyIdEver(registry: Registry, reference: string, organization?: string): Promise<string> {
  const known = registry.policies.get(reference) ?? (await registry.deleted.policy(reference))
  return idEver(known, registry, organization, (organizationId) => findPolicy(registry, reference, organizationId))
}

type RowReference = { id: string; organizationId: string }

function idEver(
  known: RowReference | undefined,
  registry: Registry,
  organization: string | undefined,
  findNow: (organizationId: string) => RowReference,
): string {
  if (known !== undefined && organization === undefined) return known.id
  const { id: organizationId } = findOrganization(registry, organization)
  return known?.organizationId === organizationId ? known.id : findNow(organizationId).id
}

export function findIssuer(registry: Registry, reference: string, organizationId: string): Issuer {
  return findRow(registry, 'issuer', registry.issuers, reference, organizationId)
}

export function findPolicy(registry: Registry, reference: string, organizationId: string): Policy {
  return findRow(registry, 'policy', registry.policies, reference, organizationId)
}

type Rows<Row extends NamedRow> = ReadonlyMap<string, Row> | PackedMap<Row>

/** All rows with the name, and others. */
function possiblyNamed<Row extends NamedRow>(rows: Rows<Row>, name: string): Iterable<Row> {
  return 'valuesContaining' in rows ? rows.valuesContaining(JSON.stringify(name)) : rows.values()
}

/** Finds a row of a kind in an organization, by id or name. */
export function findRow<Row extends NamedRow>(
  { organizations }: Registry,
  kind: string,
  rows: Rows<Row>,
  reference: string,
  organizationId: string,
): Row {
  const byId = rows.get(reference)
  if (byId !== undefined && byId.deletedAt === null && byId.organizationId === organizationId) return byId
  for (const row of possiblyNamed(rows, reference)) {
    if (row.name === reference && row.organizationId === organizationId && row.deletedAt === null) return row
  }
  throw notFound(kind, reference, organizations.size > 1 ? organizations.get(organizationId)?.name : undefined)
}

/** @throws Fault `conflict` if another row of the organization has the name */
export function checkNameIsFree(
  kind: string,
  rows: Rows<NamedRow>,
  name: string,
  organizationId: string,
  exceptId?: string,
): void {
  for (const row of possiblyNamed(rows, name)) {
    if (row.name !== name || row.organizationId !== organizationId || row.deletedAt !== null || row.id === exceptId)
      continue
    throw new Fault(
      'conflict',
      `${kind === 'issuer' ? 'An' : 'A'} ${kind} named ${JSON.stringify(name)} already exists; choose another name`,
      { field: 'name' },
    )
  }
}

/** @throws Fault `invalid` for an update without a field to change */
export function checkChanges(input: object, naming: string[]): void {
  if (Object.keys(input).every((field) => naming.includes(field)))
    throw new Fault('invalid', 'Nothing to change: set at least one field', { hint: '; see --help' })
}

/** Names the organization if there is more than one, since the row may be in another. */
export function notFound(kind: string, reference: string, organization?: string): Fault {
  const listing = kind === 'policy' ? 'policies' : `${kind.replace(' ', '-')}s`
  const [within, option] =
    organization === undefined
      ? ['', '']
      : [` in the organization ${JSON.stringify(organization)}`, ` --organization ${organization}`]
  return new Fault('not_found', `There is no ${kind} ${JSON.stringify(reference)}${within}`, {
    hint: `; see: latchkey ${listing} list${option}`,
  })
}

/** ISO 8601 UTC, as on the wire. */
export function timeOf(milliseconds: number): string
export function timeOf(milliseconds: number | null): string | null
export function timeOf(milliseconds: number | null): string | null {
  return milliseconds === null ? null : new Date(milliseconds).toISOString()
}
