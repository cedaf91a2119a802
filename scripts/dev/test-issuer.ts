// An identity provider for development: RS256 and ES256 keys, discovery, JWKS, and a mint that signs any claims. Never use it in production.
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { Fault } from '../../src/fault.ts'
import { readBody } from '../../src/http/body.ts'
import { errorReply, json } from '../../src/http/reply.ts'
import type { Handler } from '../../src/runtime/listener.ts'
import { decodeUtf8 } from '../../src/values/bytes.ts'

const algorithms = ['RS256', 'ES256'] as const
const mintBodyBytesLimit = 64 * 1024
const tokenLifetimeSeconds = 3_600

type KeyPair = { alg: (typeof algorithms)[number]; kid: string; privateKey: CryptoKey; publicKey: CryptoKey }

/**
 * Serves `/.well-known/openid-configuration`, `/jwks` and `POST /mint`. The JSON body of a mint request has the claims; missing `iss`, `iat`,
 * `exp` and `jti` are added, and `?alg=ES256` selects the key. `issuerUrl` is called for each request.
 */
export async function createTestIssuer(
  issuerUrl: () => string,
  generate: typeof generateKeyPair = generateKeyPair,
): Promise<Handler> {
  const pairs: KeyPair[] = await Promise.all(
    algorithms.map(async (alg) => ({ alg, kid: crypto.randomUUID(), ...(await generate(alg)) })),
  )
  const keys: JWK[] = await Promise.all(
    pairs.map(async ({ alg, kid, publicKey }) => ({ ...(await exportJWK(publicKey)), alg, kid, use: 'sig' })),
  )
  return async (request) => {
    try {
      const { pathname } = new URL(request.url)
      if (pathname === '/.well-known/openid-configuration') return json(200, discoveryDocument(issuerUrl()))
      if (pathname === '/jwks') return json(200, { keys })
      if (pathname === '/mint' && request.method === 'POST') return await mint(request, pairs, issuerUrl())
      throw new Fault('not_found', 'The test issuer has /.well-known/openid-configuration, /jwks and POST /mint')
    } catch (error) {
      return errorReply(
        error instanceof Fault ? error : new Fault('internal', 'Internal server error', { cause: error }),
      )
    }
  }
}

function discoveryDocument(issuer: string): object {
  return { issuer, jwks_uri: `${issuer}/jwks`, id_token_signing_alg_values_supported: algorithms }
}

async function mint(request: Request, pairs: KeyPair[], iss: string): Promise<Response> {
  const wanted = new URL(request.url).searchParams.get('alg') ?? 'RS256'
  const pair = pairs.find(({ alg }) => alg === wanted)
  if (pair === undefined)
    throw new Fault('invalid', `${JSON.stringify(wanted)} is not a valid value for alg: use ${algorithms.join(' or ')}`)
  const claims = parseClaims(await readBody(request, mintBodyBytesLimit))
  const iat = Math.floor(Date.now() / 1_000)
  const payload = { iss, iat, exp: iat + tokenLifetimeSeconds, jti: crypto.randomUUID(), ...claims }
  const token = await new SignJWT(payload)
    .setProtectedHeader({ alg: pair.alg, typ: 'JWT', kid: pair.kid })
    .sign(pair.privateKey)
  return new Response(token, { headers: { 'content-type': 'application/jwt' } })
}

function parseClaims(body: Uint8Array): object {
  try {
    const claims: unknown = JSON.parse(decodeUtf8(body) || '{}')
    if (typeof claims === 'object' && claims !== null) return claims
  } catch {
    // Reported below.
  }
  throw new Fault('invalid', 'The body must be a JSON object of claims')
}
