// The saved objects of an organization as entries of a document, normalised. Secrets are never among them.

import { mapInSlices } from '../../../db/read/pace.ts'
import type { ApiKey, Issuer, Policy, Price, Upstream } from '../../../db/schema/schema.ts'
import { listApiKeys } from '../../../db/tables/api-keys.ts'
import { listWorkspaces } from '../../../db/tables/organizations.ts'
import { listPrices } from '../../../db/tables/upstreams.ts'
import { configuredUpstreamName } from '../../inference/upstream/targets.ts'
import { nanodollarsPerDollar } from '../../limits.ts'
import type { Preset } from '../../presets/drafts.ts'
import type { PresetContent } from '../../presets/preset.ts'
import type { Registry } from '../../registry/registry.ts'
import { entryOf } from '../kinds/fields.ts'
import { issuerFields } from '../kinds/issuer.ts'
import { keyFields } from '../kinds/key.ts'
import { policyFields } from '../kinds/policy.ts'
import type { AdminContext } from '../operation/context.ts'
import { timeOf } from '../operation/references.ts'
import { showExchange } from '../upstreams/upstreams.ts'
import { type Entry, type Kind, nameOf, normalise } from './document.ts'
import type { Saved } from './plan.ts'

const keysPerStatement = 100

type Stored = { id: string; managedBy: string | null; updatedAt: number }

function toSaved(kind: Kind, { id, managedBy, updatedAt }: Stored, entry: Entry): Saved {
  return { id, managedBy, updatedAt, name: nameOf(kind, entry), entry }
}

/** What is saved of one kind, in no order. */
export async function readSaved(context: AdminContext, kind: Kind, organizationId: string): Promise<Saved[]> {
  const { registry, orm } = context
  const isOurs = (row: { organizationId: string; deletedAt: number | null }) =>
    row.organizationId === organizationId && row.deletedAt === null
  switch (kind) {
    case 'issuers':
      return [...registry.issuers.values()].filter(isOurs).map((row) => toSaved(kind, row, issuerEntry(row, registry)))
    case 'keys':
      return readKeys(
        context,
        [...registry.keys.values()].filter((row) => isOurs(row) && row.kind === 'inference').map(({ id }) => id),
      )
    case 'policies':
      return mapInSlices([...registry.policies.values()].filter(isOurs), (row) => {
        const names = { issuer: registry.issuers.get(row.issuerId)?.name, key: registry.keys.get(row.keyId)?.name }
        return toSaved(kind, row, policyEntry(row, names))
      })
    case 'presets':
      return readPresets(context, organizationId)
    case 'upstreams':
      return registry.upstreamsInOrder
        .filter(({ id }) => id !== configuredUpstreamName)
        .map((row) => toSaved(kind, row, upstreamEntry(row)))
    case 'prices':
      return mapInSlices(await listPrices(orm), (row) => toSaved(kind, { ...row, id: row.model }, priceEntry(row)))
  }
}

async function readKeys({ orm }: AdminContext, ids: string[]): Promise<Saved[]> {
  const read: Saved[] = []
  for (let start = 0; start < ids.length; start += keysPerStatement)
    for (const { key, ownerName, workspaceName } of await listApiKeys(orm, ids.slice(start, start + keysPerStatement)))
      read.push(toSaved('keys', key, keyEntry(key, { owner: ownerName, workspace: workspaceName })))
  return read
}

async function readPresets({ orm, registry, presets }: AdminContext, organizationId: string): Promise<Saved[]> {
  const read: Saved[] = []
  for (const { id, name } of await listWorkspaces(orm, organizationId)) {
    const active = [...(registry.presetsOf.get(id)?.values() ?? [])].filter(({ status }) => status !== 'archived')
    for (const preset of active) {
      const version = await presets.versionOf(preset)
      if (version === undefined) throw new Error(`Preset ${preset.id} lacks its designated version`)
      read.push(toSaved('presets', preset, presetEntry(preset, name, version)))
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
  return normalise('presets', {
    slug: preset.slug,
    workspace,
    name: preset.name === preset.slug ? null : preset.name,
    description: preset.description,
    status: preset.status,
    system_prompt: systemPrompt,
    config,
  })
}

export function upstreamEntry(row: Upstream): Entry {
  return normalise('upstreams', {
    name: row.name,
    base_url: row.baseUrl,
    credential_exchange: row.credentialExchange && omitNulls(showExchange(row.credentialExchange)),
    models: row.models,
    priority: row.priority,
    ca_pem: row.caPem,
    first_byte_seconds: row.firstByteSeconds,
    idle_seconds: row.idleSeconds,
    forward_headers: row.forwardHeaders,
    return_headers: row.returnHeaders,
  })
}

function omitNulls(value: object | null): object {
  return Object.fromEntries(Object.entries(value ?? {}).filter(([, member]) => member !== null))
}

export function priceEntry({ model, promptNanodollars, completionNanodollars, cachedNanodollars }: Price): Entry {
  return normalise('prices', {
    model,
    prompt: promptNanodollars / nanodollarsPerDollar,
    completion: completionNanodollars / nanodollarsPerDollar,
    cached: cachedNanodollars === null ? null : cachedNanodollars / nanodollarsPerDollar,
  })
}
