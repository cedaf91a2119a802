// Ends a login at the identity provider (RFC 7009).
import * as oauth from 'oauth4webapi'
import type { Login } from '../login-files.ts'
import { authenticationOf, clientOf, explained, type Provider } from '../login-provider.ts'

/** Revokes the refresh token, and what was issued with it. Without a refresh token, it does nothing. Throws a fault. */
export async function revoke(login: Login, { server, options }: Provider): Promise<void> {
  const { refreshToken } = login
  if (refreshToken === undefined) return
  await explained('revoke the login', async () => {
    const authentication = authenticationOf(login)
    const response = await oauth.revocationRequest(server, clientOf(login), authentication, refreshToken, options)
    await oauth.processRevocationResponse(response)
  })
}
