// A server that trusts one issuer by a pasted key set, without network access. Its clock stands still until a test
// moves it.
import {
  audience,
  postExchange,
  type Row,
  startTestServer,
  subject,
  type TestServer,
  type TestServerOptions,
} from './latchkey.ts'
import { createKeyPair, type KeyPair, signToken, type TokenPart } from './subject-token.ts'

export const issuerUrl = 'https://idp.example.com'

export type PastedIssuer = TestServer & {
  /** The server's clock, in milliseconds since 1970 UTC. */
  clock: { now: number }
  /** Addresses that the server tried to fetch. */
  fetched: string[]
  key: Row & { key: string }
  issuer: Row
  policy: Row
  pairs: { es: KeyPair; rs: KeyPair; otherEs: KeyPair }
  /**
   * The claims of a token that the policy accepts, valid for an hour. `claims` replaces them; undefined removes one.
   */
  claims: (claims?: Record<string, unknown>) => Record<string, unknown>
  /** Such a token, signed with ES256. */
  sign: (claims?: Record<string, unknown>, header?: TokenPart) => Promise<string>
  exchange: (subjectToken: string, fields?: Record<string, string | undefined>) => Promise<Response>
}

/** The key set contains two ES256 keys and one RS256 key. */
export async function startWithPastedIssuer(options: TestServerOptions = {}): Promise<PastedIssuer> {
  const clock = { now: Date.now() }
  const fetched: string[] = []
  const test = await startTestServer({
    ...options,
    dependencies: {
      now: () => clock.now,
      // A public address, so that the server tries to fetch it.
      resolve: async () => ['1.1.1.1'],
      fetch: (url) => {
        fetched.push(url)
        return Promise.reject(new Error('This server has no network'))
      },
      ...options.dependencies,
    },
  })
  const [es, rs, otherEs] = await Promise.all([
    createKeyPair('ES256', 'es'),
    createKeyPair('RS256', 'rs'),
    createKeyPair('ES256', 'other-es'),
  ])
  const jwks = { keys: [es.publicJwk, rs.publicJwk, otherEs.publicJwk] }
  const key = await test.admin<Row & { key: string }>('keys.create', { name: 'target' })
  const issuer = await test.admin('issuers.add', { name: 'idp', issuer_url: issuerUrl, jwks, shared: false })
  const policy = await test.admin('policies.create', {
    name: 'policy',
    issuer: 'idp',
    key: 'target',
    audience,
    subject,
  })
  const claims = (changed: Record<string, unknown> = {}) => {
    const iat = Math.floor(clock.now / 1_000)
    return { iss: issuerUrl, sub: subject, aud: audience, iat, exp: iat + 3_600, jti: crypto.randomUUID(), ...changed }
  }
  return {
    ...test,
    clock,
    fetched,
    key,
    issuer,
    policy,
    pairs: { es, rs, otherEs },
    claims,
    sign: (changed, header) => signToken(es, claims(changed), header),
    exchange: (subjectToken, fields = {}) =>
      postExchange(test.server.baseUrl, { federation_policy_id: policy.id, subject_token: subjectToken, ...fields }),
  }
}
