// The credentials for upstreams: encrypted in the database and decrypted on first use, or exchanged for tokens.
import { decrypt, encrypt } from '../../tokens/master-key.ts'
import { createExchangedTokens, type ExchangedTokensOptions } from './exchanged-tokens.ts'
import { configuredUpstreamName, type Upstream } from './targets.ts'

export type Credentials = {
  /** The credential for an upstream, if it needs one. @throws Fault `bad_gateway` if it is exchanged for a token and that fails */
  of: (upstream: Upstream) => Promise<string | undefined>
  /** A new credential for an upstream that refused this one, if it can have one. */
  replace: (upstream: Upstream, refused: string) => Promise<string | undefined>
}

/** The credential of the configured upstream is read for each request. */
export type CredentialOptions = ExchangedTokensOptions & {
  masterKey: CryptoKey
  inEffect: { read: () => { readonly upstreamApiKey: string | undefined } }
}

/** Decrypted credentials, kept by the immutable value of an upstream: an edit makes a new value. */
export function createCredentials({ masterKey, inEffect, ...outbound }: CredentialOptions): Credentials {
  const opened = new WeakMap<Upstream, Promise<string>>()
  const tokenOf = createExchangedTokens(outbound)
  return {
    of: async (upstream) => {
      if (upstream.id === configuredUpstreamName) return inEffect.read().upstreamApiKey
      if (upstream.credentialExchange !== null) return (await tokenOf(upstream, upstream.credentialExchange).get()).text
      if (upstream.credentialEncrypted === null) return undefined
      const known = opened.get(upstream) ?? openCredential(masterKey, upstream.id, upstream.credentialEncrypted)
      opened.set(upstream, known)
      return known
    },
    replace: async (upstream, refused) => {
      if (upstream.credentialExchange === null) return undefined
      return (await tokenOf(upstream, upstream.credentialExchange).replace(refused))?.text
    },
  }
}

export function sealCredential(masterKey: CryptoKey, upstreamId: string, text: string): Promise<string> {
  return encrypt(masterKey, upstreamId, new TextEncoder().encode(text))
}

/** @throws an error when the master key does not fit */
export async function openCredential(masterKey: CryptoKey, upstreamId: string, sealed: string): Promise<string> {
  return new TextDecoder().decode(await decrypt(masterKey, upstreamId, sealed))
}
