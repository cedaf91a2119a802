// Publishes the keys that verify access tokens (reference: Key set of access tokens).
import type { Context } from '../context.ts'
import { accessTokenKeysCacheSeconds } from '../limits.ts'

export async function publishJwks(_request: Request, { signingKeys, now }: Context): Promise<Response> {
  return new Response(signingKeys.jwks(now()), {
    headers: { 'content-type': 'application/json', 'cache-control': `public, max-age=${accessTokenKeysCacheSeconds}` },
  })
}
