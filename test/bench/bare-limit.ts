// The least that an exchange can cost on this runtime: parse the form, verify the token with a key in memory, sign ES256, answer. It looks
// nothing up, checks no rule and keeps no record. Prints its port. `bun bare-limit.ts JWKS_URL`
import type { JWK } from 'jose'

const [, , jwksUrl = ''] = process.argv
const { keys } = (await (await fetch(jwksUrl)).json()) as { keys: JWK[] }
const algorithms = {
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  ES256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
} as const
const verifying = new Map<string, CryptoKey>()
for (const name of ['RS256', 'ES256'] as const) {
  const jwk = keys.find(({ alg }) => alg === name) as JsonWebKey
  verifying.set(name, await crypto.subtle.importKey('jwk', jwk, algorithms[name], false, ['verify']))
}
const { privateKey } = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, [
  'sign',
  'verify',
])
const header = Buffer.from(JSON.stringify({ alg: 'ES256', typ: 'at+jwt', kid: 'bare' })).toString('base64url')
const encoder = new TextEncoder()

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  development: false,
  fetch: async (request) => {
    const token = new URLSearchParams(await request.text()).get('subject_token') ?? ''
    const [head = '', body = '', signature = ''] = token.split('.')
    const { alg } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { alg: 'RS256' | 'ES256' }
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as { sub: string }
    const key = verifying.get(alg) as CryptoKey
    const signed = encoder.encode(`${head}.${body}`)
    if (!(await crypto.subtle.verify(algorithms[alg], key, Buffer.from(signature, 'base64url'), signed)))
      return new Response('', { status: 400 })
    const iat = Math.floor(Date.now() / 1_000)
    const payload = {
      iss: 'x',
      aud: 'x',
      sub: claims.sub,
      client_id: 'x',
      scope: 'inference',
      iat,
      exp: iat + 900,
      jti: crypto.randomUUID(),
    }
    const input = `${header}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}`
    const sealed = await crypto.subtle.sign(algorithms.ES256, privateKey, encoder.encode(input))
    const access_token = `${input}.${Buffer.from(sealed).toString('base64url')}`
    return Response.json({ access_token, token_type: 'Bearer', expires_in: 900 })
  },
})
console.log(server.port)
