// Packers for tests, and bundles that they sign by hand, so that a test can break any part.

import { readKeySet, writeKeys } from '../../src/federation/issuer/key-set.ts'
import type { BundleClaims, PackerKey } from '../../src/federation/issuer/packer-key.ts'
import { createPackerKey, signKeyBundle } from '../../src/federation/issuer/packer-key.ts'
import type { KeyPair } from './subject-token.ts'

export type TestPacker = {
  key: PackerKey
  /** A bundle that is valid for 30 days from `now`, with claims replaced. */
  pack: (pairs: KeyPair[], changed?: Partial<Record<keyof BundleClaims, unknown>>) => Promise<string>
}

export const daySeconds = 24 * 60 * 60

export async function createPacker(
  issuerUrl: string,
  now: () => number,
  algorithm: PackerKey['algorithm'] = 'EdDSA',
): Promise<TestPacker> {
  const key = await createPackerKey(algorithm)
  return {
    key,
    pack: (pairs, changed = {}) => {
      const iat = Math.floor(now() / 1_000)
      const published = pairs.map(({ publicJwk }) => publicJwk)
      const keys = published.length === 0 ? [] : writeKeys(readKeySet({ keys: published }))
      const claims = { iss: 'packer', sub: issuerUrl, iat, exp: iat + 30 * daySeconds, seq: 10, keys }
      const more = { refresh_hint: 10 * daySeconds, evidence: { jwks_url: `${issuerUrl}/keys` } }
      return signKeyBundle({ ...claims, ...more, ...changed } as BundleClaims, key)
    },
  }
}
