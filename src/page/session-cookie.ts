// The cookie of a session: 32 random bytes as base64url. Only its SHA-256 is kept.
import { hash, randomBytes } from 'node:crypto'
import type { PageOrigin } from '../http/page-origin.ts'

const tokenText = /^[\w-]{43}$/

/** The text of a new session cookie or one-time link. */
export function createToken(): string {
  return randomBytes(32).toString('base64url')
}

/** In hex. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'hex')
}

/**
 * Over HTTPS, `__Host-` keeps other hosts from setting the cookie. Browsers refuse that prefix over plain HTTP, and send a cookie of
 * this machine to every port of it, so the name has the port.
 */
export function cookieNameOf({ isSecure, port }: PageOrigin): string {
  return isSecure ? '__Host-latchkey' : `latchkey-${port}`
}

/** The SHA-256 of the session cookie. Undefined without one, or with several of that name. */
export function readCookie({ headers }: Request, page: PageOrigin): string | undefined {
  const start = `${cookieNameOf(page)}=`
  const sent = (headers.get('cookie') ?? '').split(/; */).filter((pair) => pair.startsWith(start))
  const [token = ''] = sent.map((pair) => pair.slice(start.length))
  return sent.length === 1 && tokenText.test(token) ? hashToken(token) : undefined
}

/** The `Set-Cookie` header of a session that lasts so many seconds; of one that has ended, without a token. */
export function setCookie(page: PageOrigin, token: string, seconds: number): string {
  const flags = `Path=/; HttpOnly; SameSite=Strict${page.isSecure ? '; Secure' : ''}`
  return `${cookieNameOf(page)}=${token}; Max-Age=${seconds}; ${flags}`
}
