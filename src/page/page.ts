// What serving the admin page requires: its origin, the sessions, the one-time links and the limit of sign-ins.

import { isFromPage, type PageOrigin, pageOriginOf } from '../http/page-origin.ts'
import type { BearerContext } from '../keys/bearer.ts'
import { readCookie } from './session-cookie.ts'
import { createSessions, type Session, type Sessions, sessionEnded } from './sessions.ts'
import { createSignInLinks, type SignInLinks } from './sign-in-links.ts'
import { createSignInRate, type SignInRate } from './sign-in-rate.ts'

export type Page = {
  origin: PageOrigin
  /** The address that browsers open. */
  url: string
  sessions: Sessions
  links: SignInLinks
  signInRate: SignInRate
}

/** Requests that the page sends on its own, such as polls, have this header. They do not keep a session alive. */
const backgroundHeader = 'x-latchkey-background'

type Dependencies = Parameters<typeof createSessions>[0]

/** `url`: where browsers open the page. */
export function createAdminPage(dependencies: Dependencies, url: string): Page {
  return {
    origin: pageOriginOf(url),
    url,
    sessions: createSessions(dependencies),
    links: createSignInLinks(dependencies),
    signInRate: createSignInRate(),
  }
}

/** Finds the session of a request from the page. Without a page, no cookie counts. */
export function createSessionFinder(page: Page | undefined): BearerContext['findSession'] {
  return (request): Session | undefined => {
    const token = page !== undefined && isFromPage(request, page.origin) ? readCookie(request, page.origin) : undefined
    if (page === undefined || token === undefined) return undefined
    const session = page.sessions.find(token, { isUse: !request.headers.has(backgroundHeader) })
    if (session !== undefined) return session
    throw sessionEnded()
  }
}

/** The context of an address without the page: no session counts there. */
export function withoutPage<Context extends Pick<BearerContext, 'findSession'> & { page?: Page | undefined }>(
  context: Context,
): Context {
  return { ...context, page: undefined, findSession: createSessionFinder(undefined) }
}
