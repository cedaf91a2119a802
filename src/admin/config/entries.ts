// The saved objects of an organization as entries of a document. Secrets are never among them.

import { createPace, mapInSlices } from '../../../db/read/pace.ts'
import type { ApiKey, Issuer, Policy } from '../../../db/schema/schema.ts'
import type { Price, Upstream } from '../../../db/schema/upstream-schema.ts'
import { listApiKeys } from '../../../db/tables/api-keys.ts'
import { listWorkspaces } from '../../../db/tables/organizations.ts'
import { listPrices } from '../../../db/tables/upstreams.ts'
import { configuredUpstreamName } from '../../inference/upstream/targets.ts'
import type { Preset } from '../../presets/drafts.ts'
import type { PresetContent } from '../../presets/preset.ts'
import type { Registry } from '../../registry/registry.ts'
import { entryOf } from '../kinds/fields.ts'
import { issuerFields } from '../kinds/issuer.ts'
import { keyFields } from '../kinds/key.ts'
import { type Entry, type Kind, kindRecords } from '../kinds/kinds.ts'
import { policyFields } from '../kinds/policy.ts'
import { presetFields } from '../kinds/preset.ts'
import { priceFields } from '../kinds/price.ts'
import { upstreamFields } from '../kinds/upstream.ts'
import type { Needs } from '../operation/context.ts'
import { timeOf } from '../operation/references.ts'
import type { SavedEntry } from './plan.ts'

const keysPerStatement = 100

type StoredRow = { id: string; managedBy: string | null; updatedAt: number }

function toSaved(kind: Kind, { id, managedBy, updatedAt }: StoredRow, entry: Entry): SavedEntry {
  return { id, managedBy, updatedAt, name: kindRecords[kind].nameOf(entry), entry }
}

type OrganizationRow = { organizationId: string; deletedAt: number | null }

export function readIssuers({ registry }: Needs<'registry'>, organizationId: string): Promise<SavedEntry[]> {
  return mapInSlices(oursIn(registry.issuers.values(), organizationId), (row) =>
    toSaved('issuers', row, issuerEntry(row, registry)),
  )
}

export function readPolicies({ registry }: Needs<'registry'>, organizationId: string): Promise<SavedEntry[]> {
  return mapInSlices(oursIn(registry.policies.values(), organizationId), (row) => {
    const names = { issuer: registry.issuers.get(row.issuerId)?.name, key: registry.keys.get(row.keyId)?.name }
    return toSaved('policies', row, policyEntry(row, names))
  })
}

/** Those that were added. */
export function readUpstreams({ registry }: Needs<'registry'>): SavedEntry[] {
  const added = registry.upstreamsInOrder.filter(({ id }) => id !== configuredUpstreamName)
  return added.map((row) => toSaved('upstreams', row, upstreamEntry(row)))
}

export async function readPrices({ orm }: Needs<'orm'>): Promise<SavedEntry[]> {
  return mapInSlices(await listPrices(orm), (row) => toSaved('prices', { ...row, id: row.model }, priceEntry(row)))
}

export function oursIn<Row extends OrganizationRow>(rows: Iterable<Row>, organizationId: string): Row[] {
  return [...rows].filter((row) => row.organizationId === organizationId && row.deletedAt === null)
}

export async function readKeys(
  { orm, registry }: Needs<'orm' | 'registry'>,
  organizationId: string,
): Promise<SavedEntry[]> {
  const rows = oursIn(registry.keys.values(), organizationId).filter(({ kind }) => kind === 'inference')
  const ids = rows.map(({ id }) => id)
  const read: SavedEntry[] = []
  const pace = createPace()
  for (let start = 0; start < ids.length; start += keysPerStatement) {
    for (const { key, userName, workspaceName } of await listApiKeys(orm, ids.slice(start, start + keysPerStatement)))
      read.push(toSaved('keys', key, keyEntry(key, { owner: userName, workspace: workspaceName })))
    await pace()
  }
  return read
}

export async function readPresets(
  { orm, registry, presets }: Needs<'orm' | 'registry' | 'presets'>,
  organizationId: string,
): Promise<SavedEntry[]> {
  const read: SavedEntry[] = []
  const pace = createPace()
  for (const { id, name } of await listWorkspaces(orm, organizationId)) {
    const active = [...(registry.presetsOf.get(id)?.values() ?? [])].filter(({ status }) => status !== 'archived')
    for (const preset of active) {
      const version = await presets.versionOf(preset)
      if (version === undefined) throw new Error(`Preset ${preset.id} lacks its designated version`)
      read.push(toSaved('presets', preset, presetEntry(preset, name, version)))
      await pace()
    }
  }
  return read
}

/** The keys of an issuer that accepts only bundles are not part of a document. */
export function issuerEntry(row: Issuer, { bundleSigners }: Pick<Registry, 'bundleSigners'>): Entry {
  const { jwks, bundleSignerId: signerId } = row
  const isPasted = signerId === null && jwks !== null
  return entryOf(issuerFields, row, {
    jwks: isPasted ? (JSON.parse(jwks) as unknown) : null,
    keys_expire_at: isPasted ? timeOf(row.keysExpireAt) : null,
    bundle_signer: signerId === null ? null : (bundleSigners.get(signerId)?.name ?? signerId),
  })
}

export function keyEntry(row: ApiKey, names: { owner: string; workspace: string }): Entry {
  return entryOf(keyFields, row, names)
}

export function policyEntry(row: Policy, names: { issuer: string | undefined; key: string | undefined }): Entry {
  return entryOf(policyFields, row, names)
}

export function presetEntry(preset: Preset, workspace: string, { config, systemPrompt }: PresetContent): Entry {
  const name = preset.name === preset.slug ? null : preset.name
  return entryOf(presetFields, preset, { workspace, name, system_prompt: systemPrompt, config })
}

export function upstreamEntry(row: Upstream): Entry {
  return entryOf(upstreamFields, row, {})
}

export function priceEntry(row: Price): Entry {
  return entryOf(priceFields, row, {})
}
