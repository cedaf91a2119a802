// How an issuer is shown: its settings, its keys, when they expire, and the bundle that they came from.

import type { IssuerKeySet } from '../../../db/schema/schema.ts'
import { readIssuerKeySet } from '../../../db/tables/issuers.ts'
import { causeOf } from '../../fault.ts'
import { type Issuer, sourceOf } from '../../federation/issuer/issuer.ts'
import { readKeySet } from '../../federation/issuer/key-set.ts'
import type { Registry } from '../../registry/registry.ts'
import { firstToExpire } from '../../values/certificates.ts'
import { showFields } from '../kinds/fields.ts'
import { issuerFields } from '../kinds/issuer.ts'
import type { Needs } from '../operation/context.ts'
import { seesCauses } from '../operation/installation.ts'
import type { issuerResponse } from '../operation/issuer-response.ts'
import { timeOf } from '../operation/references.ts'

type UsableKey = { kid: string | null; algorithm: string }
type IssuerShown = typeof issuerResponse.infer

export type ShowIssuerContext = Needs<'orm' | 'registry' | 'issuerKeys' | 'dispatch' | 'actor' | 'role'>

/** What failed is only for those who may read it. */
export async function showIssuer(context: ShowIssuerContext, id: string): Promise<IssuerShown> {
  const { orm, registry, issuerKeys, dispatch } = context
  const row = registry.issuers.get(id)
  if (row === undefined) throw new Error(`The registry lacks issuer ${id}`)
  const keySet = await readIssuerKeySet(orm, id)
  const { failing, fetches } = issuerKeys.stateOf(row)
  const isFetchedHere = row.jwks === null && dispatch !== undefined
  const derived = {
    jwks: row.jwks === null ? null : (JSON.parse(row.jwks) as unknown),
    ca_expires_at: timeOf(row.caPem === null ? null : firstToExpire(row.caPem).expiresAt),
    keys_fetched_at: timeOf(keySet?.fetchedAt ?? null),
    // Only a process that serves fetches them.
    keys_fetched_since_start: isFetchedHere ? fetches > 0 : null,
    keys_fresh_until: timeOf(keySet?.freshUntil ?? null),
    keys_usable_until: timeOf(keySet === undefined ? null : keySet.freshUntil + row.keysStaleSeconds * 1_000),
    keys_failing_since: timeOf(failing?.since ?? null),
    keys_failure: failing === undefined || !seesCauses(context) ? null : causeOf(failing.error),
    bundle_signer: signerName(registry, row.bundleSignerId),
    keys: listKeys(row, keySet),
    has_page_secret: row.pageSecretEncrypted !== null,
  }
  const shown = { ...showFields(issuerFields, row, derived), key_bundle: showBundle(registry, row) }
  return shown as IssuerShown
}

function signerName({ bundleSigners }: Registry, id: string | null): string | null {
  return id === null ? null : (bundleSigners.get(id)?.name ?? id)
}

function showBundle(registry: Registry, { keyBundle }: Issuer): IssuerShown['key_bundle'] {
  if (keyBundle === null) return null
  const { signerId, packer, sequence, issuedAt, refreshHintSeconds, evidence } = keyBundle
  return {
    bundle_signer: signerName(registry, signerId),
    packer,
    sequence,
    issued_at: timeOf(issuedAt),
    refresh_hint: refreshHintSeconds,
    evidence,
  }
}

/** Keys of the pasted set, or of the last set fetched from the current source. A damaged set has no keys. */
function listKeys(issuer: Issuer, fetched: IssuerKeySet | undefined): UsableKey[] {
  const isFromHere = fetched?.source === sourceOf(issuer)
  try {
    const keys = readKeySet(JSON.parse(issuer.jwks ?? (isFromHere ? fetched.jwks : '')))
    return keys.map(({ kid = null, algorithm }) => ({ kid, algorithm }))
  } catch {
    return []
  }
}
