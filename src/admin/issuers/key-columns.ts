// The columns of an issuer that say where its keys come from and when they expire. A bundle signer excludes every other source.

import type { Issuer as IssuerRow } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import { emptyKeySet } from '../../federation/issuer/key-expiry.ts'
import { readStoredSequence } from '../../federation/issuer/stored-keys.ts'
import { shellWord } from '../../runtime/file-access.ts'
import type { Needs } from '../operation/context.ts'
import { findBundleSigner } from './bundle-signers.ts'
import { byDiscovery, type KeySource, type KeySourceInput, readKeySource } from './issuer-input.ts'

export type KeyColumnsInput = KeySourceInput & {
  bundle_signer?: string | null
  keys_expire_at?: Date | null
  issuer_url?: string
}
type KeyColumns = Partial<KeySource & Pick<IssuerRow, 'bundleSignerId' | 'keysExpireAt' | 'keyBundle'>>

const noKeys = { keySource: 'jwks', jwksUrl: null, jwks: emptyKeySet, keysExpireAt: null, keyBundle: null } as const

/**
 * The columns that an input sets. `before` is the saved issuer.
 * @throws Fault `invalid` for a source that cannot be used, `conflict` for keys that only a bundle may change
 */
export function keyColumns(
  context: Needs<'config' | 'registry'>,
  organizationId: string,
  input: KeyColumnsInput,
  before?: IssuerRow,
): KeyColumns {
  const signerId = signerIdOf(context, organizationId, input, before)
  const named = readKeySource(context, input)
  const isSourceNamed = 'keySource' in named
  if (signerId !== null) return columnsOfSigner(signerId, { ...input, isSourceNamed }, before)
  // An issuer that waited for its first bundle has no keys to keep.
  const source = !isSourceNamed && before?.jwks === emptyKeySet ? byDiscovery : named
  const expiry = input.keys_expire_at
  const isPasted = (source.keySource ?? before?.keySource) === 'jwks'
  if (expiry != null && !isPasted)
    throw new Fault('invalid', 'keys_expire_at is for a pasted JWKS; the keys of this issuer are fetched')
  if (source.keySource === undefined)
    return { bundleSignerId: null, ...(expiry === undefined ? {} : { keysExpireAt: timeOf(expiry) }) }
  checkSequence(source.jwks, before)
  return { bundleSignerId: null, ...source, keysExpireAt: timeOf(expiry), keyBundle: null }
}

/** @throws Fault `invalid`: the issuer would be refused at once */
export function rejectPast({ now }: Needs<'now'>, expiry: Date | null | undefined): void {
  if (expiry != null && expiry.getTime() <= now())
    throw new Fault('invalid', `keys_expire_at is ${expiry.toISOString()}, which has passed; use a later time`)
}

function timeOf(expiry: Date | null | undefined): number | null {
  return expiry?.getTime() ?? null
}

function signerIdOf(
  context: Needs<'registry'>,
  organizationId: string,
  { bundle_signer }: KeyColumnsInput,
  before: IssuerRow | undefined,
): string | null {
  if (bundle_signer === undefined) return before?.bundleSignerId ?? null
  return bundle_signer === null ? null : findBundleSigner(context.registry, bundle_signer, organizationId).id
}

function columnsOfSigner(
  signerId: string,
  input: KeyColumnsInput & { isSourceNamed: boolean },
  before: IssuerRow | undefined,
): KeyColumns {
  const isOtherUrl = input.issuer_url !== undefined && before !== undefined && input.issuer_url !== before.issuerUrl
  if (input.isSourceNamed || input.keys_expire_at !== undefined || isOtherUrl)
    throw new Fault('conflict', 'Only a signed bundle may change the keys and the URL of this issuer', {
      reason: 'bundle_only',
      hint: ': latchkey issuers import FILE. To allow other keys: latchkey issuers update ISSUER --no-bundle-signer',
    })
  if (before === undefined) return { bundleSignerId: signerId, ...noKeys }
  rejectUnbundled(before)
  return { bundleSignerId: signerId }
}

/** A signer can be set once the keys are from a bundle: from then on, no key is there that no signer has signed. */
export function rejectUnbundled({ name, keyBundle, jwks }: IssuerRow): void {
  if (keyBundle !== null || jwks === emptyKeySet) return
  throw new Fault(
    'conflict',
    `The keys of the issuer ${JSON.stringify(name)} are not from a signed bundle; import one first`,
    { reason: 'bundle_missing', hint: `: latchkey issuers import FILE, which has the keys of ${shellWord(name)}` },
  )
}

/** What a row that a document describes keeps of the saved one: keys from bundles, while the URL stays. @throws Fault `conflict` if these keys are not of that form */
export function keptKeys({ bundleSignerId, issuerUrl }: IssuerRow, before: IssuerRow | undefined): KeyColumns {
  if (bundleSignerId === null || before?.issuerUrl !== issuerUrl) return {}
  rejectUnbundled(before)
  const { keySource, jwksUrl, jwks, keysExpireAt, keyBundle } = before
  return { keySource, jwksUrl, jwks, keysExpireAt, keyBundle }
}

/** A SPIFFE bundle document replaces only an older one. */
function checkSequence(jwks: string | null | undefined, before: IssuerRow | undefined): void {
  const [last, next] = [before?.jwks, jwks].map((text) => (text == null ? undefined : readStoredSequence(text)))
  if (last === undefined || next === undefined || next >= last) return
  throw new Fault('conflict', `The SPIFFE bundle has spiffe_sequence ${next}, and ${last} is saved; use the newer one`)
}
