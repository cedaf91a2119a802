// An issuer inside a fetch function. The test controls its responses, their timing and the clock.
import type { IssuerKeySet } from '../../db/schema/schema.ts'
import type { Issuer } from '../../src/federation/issuer/issuer.ts'
import { createIssuerKeys, type IssuerKeys, type IssuerKeysOptions } from '../../src/federation/issuer/issuer-keys.ts'
import { json } from '../../src/http/reply.ts'
import { createLog } from '../../src/observe/log.ts'
import type { KeyPair } from './subject-token.ts'

export const issuerUrl = 'https://idp.example.com'
const discoveryUrl = `${issuerUrl}/.well-known/openid-configuration`
const keysUrl = `${issuerUrl}/keys`

export type IssuerServer = {
  keys: IssuerKeys
  /** `ahead` is how far the wall clock is ahead of the monotonic clock. */
  clock: { now: number; ahead: number }
  /** Fetched addresses, in order. */
  fetched: string[]
  /** Stored key sets, in order. */
  kept: IssuerKeySet[]
  logLines: string[]
  /** The issuer's response; a test replaces it. */
  answers: { discovery: () => Response | Promise<Response>; keys: () => Response | Promise<Response> }
  fetchesOf: (kind: 'discovery' | 'keys') => number
}

export function issuerRow(fields: Partial<Issuer> = {}): Issuer {
  return Object.freeze({
    id: 'issuer',
    organizationId: 'organization',
    name: 'idp',
    issuerUrl,
    keySource: 'discovery' as const,
    jwksUrl: null,
    jwks: null,
    maxTokenAgeSeconds: null,
    caPem: null,
    keysStaleSeconds: 86_400,
    clockSkewSeconds: 30,
    createdAt: 0,
    updatedAt: 0,
    deletedAt: null,
    managedBy: null,
    bundleSignerId: null,
    loginClientId: null,
    loginScopes: null,
    loginRedirectUri: null,
    pageClientId: null,
    pageAuthentication: 'none' as const,
    pageSecretEncrypted: null,
    pageMaxAgeSeconds: null,
    keysExpireAt: null,
    keyBundle: null,
    shared: null,
    lastKeySet: null,
    ...fields,
  })
}

export function keySetReply(pairs: KeyPair[], cacheControl?: string): Response {
  const headers: Record<string, string> = cacheControl === undefined ? {} : { 'cache-control': cacheControl }
  return json(200, { keys: pairs.map(({ publicJwk }) => publicJwk) }, headers)
}

/** A healthy issuer that publishes the keys of `pairs`. Backoff times have their full length unless `random` is set. */
export function createIssuerServer(
  pairs: KeyPair[],
  {
    random = () => 0,
    keep = async () => {},
    adopt,
  }: Partial<Pick<IssuerKeysOptions, 'random' | 'keep' | 'adopt'>> = {},
): IssuerServer {
  const clock = { now: 1_800_000_000_000, ahead: 0 }
  const fetched: string[] = []
  const kept: IssuerKeySet[] = []
  const logLines: string[] = []
  const answers: IssuerServer['answers'] = {
    discovery: () => json(200, { issuer: issuerUrl, jwks_uri: keysUrl }),
    keys: () => keySetReply(pairs),
  }
  const keys = createIssuerKeys({
    now: () => clock.now + clock.ahead,
    monotonic: () => clock.now,
    random,
    graceMilliseconds: 0,
    log: createLog((line) => logLines.push(line)),
    adopt,
    keep: async (issuer, keySet) => {
      await keep(issuer, keySet)
      kept.push(keySet)
    },
    outbound: {
      insecureIssuers: false,
      usesProxy: false,
      privateNetworks: () => undefined,
      resolve: async () => [],
      fetch: async (url) => {
        fetched.push(url)
        if (url === discoveryUrl) return answers.discovery()
        if (url === keysUrl) return answers.keys()
        return new Response(null, { status: 404 })
      },
    },
  })
  const urls = { discovery: discoveryUrl, keys: keysUrl }
  const fetchesOf = (kind: 'discovery' | 'keys') => fetched.filter((url) => url === urls[kind]).length
  return { keys, clock, fetched, kept, logLines, answers, fetchesOf }
}
