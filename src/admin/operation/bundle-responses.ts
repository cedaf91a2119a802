// The responses of the operations on bundles of issuer keys, as shapes for the OpenAPI document.
import { bundleAlgorithms } from '../../../db/schema/bundle-schema.ts'
import { bundleReasons } from '../../federation/issuer/bundle-refusal.ts'
import { type } from '../../values/shape.ts'

const time = type('string').configure({ format: 'date-time' })
const text = 'string | null'
const keys = type({ kid: text, algorithm: 'string' }).array()

export const bundleSignerResponse = type({
  id: 'string',
  name: 'string',
  organization_id: 'string',
  algorithm: type.enumerated(...bundleAlgorithms),
  key_id: 'string',
  public_jwk: 'object',
  issuers: 'string[]',
  created_at: time,
}).configure({ title: 'BundleSigner' })

export const removedSignerResponse = type({
  id: 'string',
  deleted: 'true',
  issuers_affected: 'string[]',
}).configure({ title: 'RemovedBundleSigner' })

/** A refused bundle has a reason and a message, and what could be read of it. */
const importedBundle = type({
  outcome: "'imported' | 'unchanged' | 'refused'",
  'reason?': type.enumerated(...bundleReasons),
  'message?': 'string',
  issuer: text,
  issuer_url: text,
  bundle_signer: text,
  packer: text,
  sequence: 'number.integer | null',
  issued_at: time.or('null'),
  expires_at: time.or('null'),
  keys_added: keys,
  keys_kept: keys,
  keys_gone: keys,
}).configure({ title: 'ImportedBundle' })

export const importResponse = type({ 'dry_run?': 'true', 'warnings?': 'string[]', data: importedBundle.array() })

/** The bundle that the keys of an issuer are from. */
export const keyBundleResponse = type({
  bundle_signer: text,
  packer: 'string',
  sequence: 'number.integer',
  issued_at: time,
  refresh_hint: 'number.integer | null',
  evidence: 'object',
})
