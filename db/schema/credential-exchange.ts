// What an upstream's column with the exchange of its credential holds.

/** How the server gets the credential of an upstream: by exchanging a token from a file. */
export type CredentialExchange = {
  tokenFile: string
  /** The token endpoint; null for the one of the upstream, a Latchkey. */
  url: string | null
  policy: string | null
  audience: string | null
  scope: string | null
}
