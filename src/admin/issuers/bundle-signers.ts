// Admin operations on bundle signers: the public keys whose bundles an organization trusts for the keys of its issuers.

import type { BundleSigner } from '../../../db/schema/bundle-schema.ts'
import { insertBundleSigner, updateBundleSigner } from '../../../db/tables/bundle-signers.ts'
import { Fault } from '../../fault.ts'
import { readSignerKey } from '../../federation/issuer/packer-key.ts'
import type { Registry } from '../../registry/registry.ts'
import { type } from '../../values/shape.ts'
import { nameShape, referenceShape } from '../../values/shapes.ts'
import type { bundleSignerResponse } from '../operation/bundle-responses.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { checkNameIsFree, findOrganization, findRow, organizationInput, timeOf } from '../operation/references.ts'

const listInput = type({ '+': 'reject', ...organizationInput })
const addInput = type({
  '+': 'reject',
  ...organizationInput,
  name: nameShape,
  key: type('object').configure({ says: 'A public JWK of Ed25519 or P-256' }),
})
const oneInput = type({ '+': 'reject', ...organizationInput, bundle_signer: referenceShape })

export const bundleSignerOperations = {
  'bundle_signers.add': operation(addInput, add, { mutates: true }),
  'bundle_signers.list': operation(listInput, list),
  'bundle_signers.remove': operation(oneInput, remove, { mutates: true }),
}

async function add(context: ChangeContext, { organization, name, key }: typeof addInput.infer) {
  const { registry, orm } = context
  const { id: organizationId } = findOrganization(registry, organization)
  const { algorithm, keyId, publicJwk } = await readSignerKey(key)
  checkNameIsFree('bundle signer', registry.bundleSigners, name, organizationId)
  for (const other of signersOf(registry, organizationId))
    if (other.keyId === keyId)
      throw new Fault('conflict', `The bundle signer ${JSON.stringify(other.name)} already has this key`)
  const now = context.now()
  const id = crypto.randomUUID()
  const times = { createdAt: now, updatedAt: now, deletedAt: null }
  const row = { id, organizationId, name, algorithm, keyId, publicJwk: JSON.stringify(publicJwk), ...times }
  await commit(context, [insertBundleSigner(orm, row)], [{ kind: 'bundle_signer', id }])
  return show(context, row)
}

async function list(context: Needs<'registry'>, { organization }: typeof listInput.infer) {
  const { id } = findOrganization(context.registry, organization)
  return { data: signersOf(context.registry, id).map((row) => show(context, row)) }
}

/** The issuers that accept only its bundles keep their keys until these expire, and accept no other. */
async function remove(context: ChangeContext, { organization, bundle_signer }: typeof oneInput.infer) {
  const { registry, orm } = context
  const row = findBundleSigner(registry, bundle_signer, findOrganization(registry, organization).id)
  const now = context.now()
  const change = { deletedAt: now, updatedAt: now }
  await commit(context, [updateBundleSigner(orm, row.id, change)], [{ kind: 'bundle_signer', id: row.id }])
  return { id: row.id, deleted: true, issuers_affected: issuersOf(registry, row.id) }
}

/** The signers in use of an organization. */
export function signersOf({ bundleSigners }: Registry, organizationId: string): Readonly<BundleSigner>[] {
  return [...bundleSigners.values()].filter((row) => row.organizationId === organizationId && row.deletedAt === null)
}

export function findBundleSigner(
  registry: Registry,
  reference: string,
  organizationId: string,
): Readonly<BundleSigner> {
  return findRow(registry, 'bundle signer', registry.bundleSigners, reference, organizationId)
}

function issuersOf({ issuers }: Registry, signerId: string): string[] {
  const pinned = [...issuers.values()].filter((row) => row.bundleSignerId === signerId && row.deletedAt === null)
  return pinned.map(({ name }) => name)
}

function show({ registry }: Needs<'registry'>, row: Readonly<BundleSigner>): typeof bundleSignerResponse.infer {
  return {
    id: row.id,
    name: row.name,
    organization_id: row.organizationId,
    algorithm: row.algorithm,
    key_id: row.keyId,
    public_jwk: JSON.parse(row.publicJwk) as object,
    issuers: issuersOf(registry, row.id),
    created_at: timeOf(row.createdAt),
  }
}
