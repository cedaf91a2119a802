// Publishes the keys that verify access tokens (reference: Key set of access tokens).
import { accessTokenKeysCacheSeconds } from '../limits.ts'
import type { SigningKeys } from './signing-keys.ts'

export async function publishJwks(
  _request: Request,
  { signingKeys, now }: { signingKeys: SigningKeys; now: () => number },
): Promise<Response> {
  return new Response(signingKeys.jwks(now()), {
    headers: { 'content-type': 'application/json', 'cache-control': `public, max-age=${accessTokenKeysCacheSeconds}` },
  })
}
