// Why a signed bundle of issuer keys is refused. An administrator reads the sentence; scripts read the reason.

export const bundleReasons = [
  'bundle_file_malformed',
  'bundle_too_large',
  'bundle_malformed',
  'bundle_signer_unknown',
  'bundle_signature_invalid',
  'bundle_issuer_unknown',
  'bundle_signer_mismatch',
  'bundle_issued_in_future',
  'bundle_expired',
  'bundle_replayed',
  'bundle_private_members',
  'bundle_keys_unusable',
] as const
export type BundleReason = (typeof bundleReasons)[number]

/** `message` is a sentence without a full stop. */
export type BundleRefusal = { refused: BundleReason; message: string }

export function refuseBundle(refused: BundleReason, message: string): BundleRefusal {
  return { refused, message }
}
