// One-time links to the admin page, in memory: each signs in once, within two minutes. A restart ends them.
import { createToken, hashToken } from './session-cookie.ts'

const linkMillisecondsMax = 2 * 60_000
/** Older ones are dropped. */
const linksMax = 100

/** What a link signs in to. `openedBy`: the operating system's user who asked for it. */
export type LinkGrant = { keyId: string; readOnly: boolean; openedBy: string | null }

export type SignInLinks = {
  /** Returns the secret part of a new link. */
  create: (grant: LinkGrant) => { token: string; lifetimeMilliseconds: number }
  /** What the link grants, the first time and in time. */
  take: (token: string) => LinkGrant | undefined
}

/** `monotonic` in milliseconds: a clock that is set back must not lengthen a link's life. */
export function createSignInLinks(monotonic: () => number): SignInLinks {
  const links = new Map<string, LinkGrant & { until: number }>()
  return {
    create: (grant) => {
      const token = createToken()
      for (const [key, { until }] of links) if (until <= monotonic() || links.size >= linksMax) links.delete(key)
      links.set(hashToken(token), { ...grant, until: monotonic() + linkMillisecondsMax })
      return { token, lifetimeMilliseconds: linkMillisecondsMax }
    },
    take: (token) => {
      const key = hashToken(token)
      const link = links.get(key)
      links.delete(key)
      if (link === undefined || link.until <= monotonic()) return undefined
      const { until: _until, ...grant } = link
      return grant
    },
  }
}
