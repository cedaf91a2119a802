// The types of `latchkey-client.mjs`.

export type AccessTokenOptions = {
  /** Base URL of the server, for example https://llm.example.com/v1. Default: LATCHKEY_URL. */
  url?: string
  /** Id of the policy. Default: LATCHKEY_POLICY. */
  policy?: string
  /** Where the JWT is, for example `kubernetes` or `file:/run/jwt`. Default: LATCHKEY_IDENTITY, or detected. */
  identity?: string
  /** Audience of the JWT. Default: LATCHKEY_AUDIENCE, or the origin of the URL. */
  audience?: string
  /** Allows an http:// URL of a different machine; for tests only. */
  insecureHttp?: boolean
}

/**
 * Returns a function that resolves with a valid access token, for clients that take a function as their API key. The token
 * is kept in memory and renewed ahead of need; calls at the same time share one exchange.
 */
export declare function accessToken(options?: AccessTokenOptions): () => Promise<string>
