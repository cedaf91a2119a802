// The admin operation that imports signed bundles of issuer keys: each is judged alone, and those that are accepted are saved in one commit.
import { createHash } from 'node:crypto'
import type { BundleSigner, KeyBundleRecord } from '../../../db/schema/bundle-schema.ts'
import type { Issuer as IssuerRow } from '../../../db/schema/schema.ts'
import { putBundleSequence, readBundleSequence } from '../../../db/tables/bundle-signers.ts'
import { updateIssuer } from '../../../db/tables/issuers.ts'
import { Fault } from '../../fault.ts'
import { type BundleRefusal, refuseBundle } from '../../federation/issuer/bundle-refusal.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import {
  checkKeyBundle,
  type KeyBundle,
  keyBundleFileCharactersMax,
  readKeyBundle,
  splitBundleFile,
} from '../../federation/issuer/key-bundle.ts'
import { type VerificationKey, writeKeySet } from '../../federation/issuer/key-set.ts'
import { readStoredKeys } from '../../federation/issuer/stored-keys.ts'
import { type } from '../../values/shape.ts'
import type { importResponse } from '../operation/bundle-responses.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { findOrganization, organizationInput, timeOf } from '../operation/references.ts'
import { signersOf } from './bundle-signers.ts'

const importInput = type({
  '+': 'reject',
  ...organizationInput,
  file: type(`0 < string <= ${keyBundleFileCharactersMax}`).configure({
    says: 'The text of a file of bundles: one JWS, or an object with a list of them as `bundles`',
  }),
  'dry_run?': 'boolean',
})

export const importOperations = { 'issuers.import': operation(importInput, importBundles, { mutates: true }) }

type Judgment = { sha256: string } & Partial<{ bundle: KeyBundle; signer: Readonly<BundleSigner>; issuer: Issuer }> &
  ({ outcome: 'imported' | 'unchanged' } | ({ outcome: 'refused' } & BundleRefusal))
type ImportedBundle = Judgment & { bundle: KeyBundle; signer: Readonly<BundleSigner>; issuer: Issuer }

/** @throws Fault `invalid` for a file that is not one of bundles */
async function importBundles(
  context: ChangeContext,
  { organization, file, dry_run }: typeof importInput.infer,
): Promise<typeof importResponse.infer> {
  const texts = splitBundleFile(file)
  if ('refused' in texts) throw new Fault('invalid', texts.message, { reason: texts.refused })
  const { id } = findOrganization(context.registry, organization)
  const judged: Judgment[] = []
  for (const text of texts) judged.push(await judge(context, id, text, judged))
  const imported = judged.filter(isImported)
  if (dry_run !== true && imported.length > 0) await save(context, imported)
  return { ...(dry_run === true ? { dry_run } : {}), data: judged.map(show) }
}

function isImported(judged: Judgment): judged is ImportedBundle {
  return judged.outcome === 'imported'
}

/** `earlier` are the bundles before it in the same file. */
async function judge(
  { registry, orm, now }: Needs<'orm' | 'registry' | 'now'>,
  organizationId: string,
  text: string,
  earlier: readonly Judgment[],
): Promise<Judgment> {
  const sha256 = createHash('sha256').update(text).digest('hex')
  const signers = new Map(signersOf(registry, organizationId).map((row) => [row.keyId, row]))
  const read = await readKeyBundle(text, (keyId) => signers.get(keyId))
  if ('refused' in read) return { sha256, outcome: 'refused', ...read }
  const { bundle, signer } = read
  const issuer = [...registry.issuers.values()].find(
    (row) => row.organizationId === organizationId && row.deletedAt === null && row.issuerUrl === bundle.issuerUrl,
  )
  if (issuer === undefined) return { sha256, bundle, signer, outcome: 'refused', ...unknownIssuer(bundle) }
  const found = { sha256, bundle, signer, issuer }
  if (issuer.bundleSignerId !== null && issuer.bundleSignerId !== signer.id)
    return { ...found, outcome: 'refused', ...otherSigner(issuer, signer) }
  const before = earlier.filter(isImported).filter((each) => each.issuer.id === issuer.id)
  const { keyId } = signer
  const lastSequence =
    before.findLast((each) => each.signer.id === signer.id)?.bundle.sequence ??
    (await readBundleSequence(orm, { organizationId, keyId, issuerUrl: bundle.issuerUrl }))
  const isSame = before.length === 0 && issuer.keyBundle?.sha256 === sha256
  const clock = { now: now(), clockSkewSeconds: issuer.clockSkewSeconds }
  const refusal = checkKeyBundle(bundle, { ...clock, lastSequence: isSame ? undefined : lastSequence })
  if (refusal !== undefined) return { ...found, outcome: 'refused', ...refusal }
  return { ...found, outcome: isSame ? 'unchanged' : 'imported' }
}

function unknownIssuer({ issuerUrl }: KeyBundle): BundleRefusal {
  return refuseBundle(
    'bundle_issuer_unknown',
    `No issuer has the URL ${JSON.stringify(issuerUrl.slice(0, 512))} of the bundle: add the issuer first, or pack with its exact URL`,
  )
}

function otherSigner({ name }: Issuer, signer: Readonly<BundleSigner>): BundleRefusal {
  return refuseBundle(
    'bundle_signer_mismatch',
    `The issuer ${JSON.stringify(name)} does not accept bundles of the signer ${JSON.stringify(signer.name)}: see latchkey issuers show`,
  )
}

/** The keys, and the sequence of the key that signed them, in one commit. */
async function save(context: ChangeContext, imported: readonly ImportedBundle[]): Promise<void> {
  const { orm } = context
  const now = context.now()
  const statements = imported.flatMap(({ bundle, signer, issuer, sha256 }) => {
    const { organizationId, id } = issuer
    const { issuerUrl, sequence } = bundle
    const change = { ...columnsOf(bundle, signer, sha256), updatedAt: now }
    const newest = { organizationId, keyId: signer.keyId, issuerUrl, sequence, importedAt: now }
    return [updateIssuer(orm, id, change), putBundleSequence(orm, newest)]
  })
  const ids = new Set(imported.map(({ issuer }) => issuer.id))
  await commit(
    context,
    statements,
    [...ids].map((id) => ({ kind: 'issuer', id })),
  )
}

function columnsOf(bundle: KeyBundle, signer: Readonly<BundleSigner>, sha256: string): Partial<IssuerRow> {
  const { packer, sequence, issuedAt, refreshHintSeconds, evidence } = bundle
  const signed = { signerId: signer.id, keyId: signer.keyId, packer }
  const keyBundle: KeyBundleRecord = { ...signed, sequence, issuedAt, refreshHintSeconds, sha256, evidence }
  const jwks = writeKeySet(bundle.keys)
  return { keySource: 'jwks', jwksUrl: null, jwks, keysExpireAt: bundle.expiresAt, keyBundle }
}

function show(judged: Judgment): (typeof importResponse.infer)['data'][number] {
  const { bundle, signer, issuer } = judged
  const [before, after] = [keysOf(issuer), bundle?.keys ?? []]
  const refusal = judged.outcome === 'refused' ? { reason: judged.refused, message: judged.message } : {}
  return {
    outcome: judged.outcome,
    ...refusal,
    issuer: issuer?.name ?? null,
    issuer_url: bundle?.issuerUrl ?? null,
    bundle_signer: signer?.name ?? null,
    packer: bundle?.packer ?? null,
    sequence: bundle?.sequence ?? null,
    issued_at: timeOf(bundle?.issuedAt ?? null),
    expires_at: timeOf(bundle?.expiresAt ?? null),
    keys_added: named(after.filter((key) => !isAmong(before, key))),
    keys_kept: named(after.filter((key) => isAmong(before, key))),
    keys_gone: named(bundle === undefined ? [] : before.filter((key) => !isAmong(after, key))),
  }
}

/** The keys in force: those in place, or the last that were fetched. */
function keysOf(issuer: Issuer | undefined): VerificationKey[] {
  return readStoredKeys(issuer?.jwks ?? issuer?.lastKeySet?.jwks ?? '')
}

/** A key with the same kid and another value is another key. */
function isAmong(keys: VerificationKey[], key: VerificationKey): boolean {
  return keys.some((each) => each.kid === key.kid && isSame(each.publicJwk, key.publicJwk))
}

function isSame(one: object, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function named(keys: VerificationKey[]): { kid: string | null; algorithm: string }[] {
  return keys.map(({ kid = null, algorithm }) => ({ kid, algorithm }))
}
