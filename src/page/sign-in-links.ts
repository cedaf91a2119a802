// One-time links to the admin page: each signs in once, within two minutes, at any node. The database has the SHA-256 of
// the code, so anyone who reads the database cannot sign in.
import type { Orm } from '../../db/file/open.ts'
import {
  findSignInLink,
  insertSignInLink,
  isLinkUsed,
  type LinkGrant,
  useSignInLink,
} from '../../db/tables/sign-in-links.ts'
import type { Writer } from '../../db/write/write.ts'
import { createToken, hashToken } from './session-cookie.ts'

const linkMillisecondsMax = 2 * 60_000

export type SignInLinks = {
  /** Returns the secret part of a new link. */
  create: (grant: LinkGrant) => Promise<{ token: string; lifetimeMilliseconds: number }>
  /** What the link grants, the first time and in time. */
  take: (token: string) => Promise<LinkGrant | undefined>
}

type Dependencies = { orm: Orm; writer: Pick<Writer, 'write'> }

export function createSignInLinks({ orm, writer }: Dependencies): SignInLinks {
  return {
    create: async (grant) => {
      const token = createToken()
      await writer.write(insertSignInLink(hashToken(token), grant, linkMillisecondsMax))
      return { token, lifetimeMilliseconds: linkMillisecondsMax }
    },
    take: async (token) => {
      const code = hashToken(token)
      const grant = await findSignInLink(orm, code)
      if (grant === undefined) return undefined
      try {
        await writer.write(useSignInLink(code))
        return grant
      } catch (error) {
        if (isLinkUsed(error)) return undefined
        throw error
      }
    },
  }
}
