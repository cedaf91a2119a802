// The credentials for upstreams: encrypted in the database and decrypted on first use, or exchanged for tokens.
import { decrypt, encrypt } from '../../tokens/master-key.ts'
import { createExchangedTokens, type ExchangedTokensOptions } from './exchanged-tokens.ts'
import { configuredUpstreamName, type Upstream } from './targets.ts'

export type Credentials = {
  /** The credential for an upstream, if it needs one. @throws Fault `bad_gateway` if it is exchanged for a token and that fails */
  of: (upstream: Upstream) => string | undefined | Promise<string | undefined>
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
  const opened = new WeakMap<Upstream, string | Promise<string>>()
  const tokenOf = createExchangedTokens(outbound)

  function open(upstream: Upstream, sealed: string): string | Promise<string> {
    const known = opened.get(upstream)
    if (known !== undefined) return known
    const opening = openCredential(masterKey, upstream.id, sealed)
    opened.set(upstream, opening)
    void opening.then(
      (text) => opened.set(upstream, text),
      // The callers that wait see the error.
      () => {},
    )
    return opening
  }

  return {
    of: (upstream) => {
      if (upstream.id === configuredUpstreamName) return inEffect.read().upstreamApiKey
      if (upstream.credentialExchange !== null)
        return tokenOf(upstream, upstream.credentialExchange)
          .get()
          .then(({ text }) => text)
      return upstream.credentialEncrypted === null ? undefined : open(upstream, upstream.credentialEncrypted)
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
