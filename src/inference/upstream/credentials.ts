// The credentials for upstreams: encrypted in the database, decrypted on first use.
import { decrypt, encrypt } from '../../tokens/master-key.ts'
import { configuredUpstreamName, type Upstream } from './targets.ts'

/** Decrypted credentials, kept by the immutable value of an upstream: an edit makes a new value. `configured` is read for each request. */
export function createCredentials(
  masterKey: CryptoKey,
  configured: () => string | undefined,
): (upstream: Upstream) => Promise<string | undefined> {
  const opened = new WeakMap<Upstream, Promise<string>>()
  return async (upstream) => {
    if (upstream.id === configuredUpstreamName) return configured()
    if (upstream.credentialEncrypted === null) return undefined
    const known = opened.get(upstream) ?? openCredential(masterKey, upstream.id, upstream.credentialEncrypted)
    opened.set(upstream, known)
    return known
  }
}

export function sealCredential(masterKey: CryptoKey, upstreamId: string, text: string): Promise<string> {
  return encrypt(masterKey, upstreamId, new TextEncoder().encode(text))
}

/** @throws an error when the master key does not fit */
export async function openCredential(masterKey: CryptoKey, upstreamId: string, sealed: string): Promise<string> {
  return new TextDecoder().decode(await decrypt(masterKey, upstreamId, sealed))
}
