// One sign-in on its way to the issuer and back: what only the browser that began it has, in a sealed cookie. The server keeps nothing, so
// any node can finish it.
import { randomBytes } from 'node:crypto'
import type { PageOrigin } from '../../http/page-origin.ts'
import { decrypt, encrypt } from '../../tokens/master-key.ts'

export type Attempt = { issuerId: string; state: string; nonce: string; verifier: string; begunAt: number }

const lifetimeSeconds = 600
const context = 'sign-in attempt'
const cookieCharactersMax = 2_000

export function createAttempt(issuerId: string, now: number): Attempt {
  const random = () => randomBytes(32).toString('base64url')
  return { issuerId, state: random(), nonce: random(), verifier: random(), begunAt: now }
}

/** It must come along when the issuer sends the browser back, so it cannot be `Strict`. */
export async function attemptCookie(page: PageOrigin, attempt: Attempt, masterKey: CryptoKey): Promise<string> {
  const sealed = await encrypt(masterKey, context, new TextEncoder().encode(JSON.stringify(attempt)))
  return cookie(page, sealed, lifetimeSeconds)
}

export function endedAttemptCookie(page: PageOrigin): string {
  return cookie(page, '', 0)
}

/** The sign-in that this browser began at most ten minutes ago. Undefined without one, or with several cookies of the name. */
export async function readAttempt(
  { headers }: Request,
  page: PageOrigin,
  { masterKey, now }: { masterKey: CryptoKey; now: number },
): Promise<Attempt | undefined> {
  const start = `${nameOf(page)}=`
  const sent = (headers.get('cookie') ?? '').split(/; */).filter((pair) => pair.startsWith(start))
  const sealed = sent[0]?.slice(start.length) ?? ''
  if (sent.length !== 1 || sealed.length > cookieCharactersMax) return undefined
  try {
    const text = new TextDecoder().decode(await decrypt(masterKey, context, sealed))
    const attempt = JSON.parse(text) as Attempt
    const age = now - attempt.begunAt
    return age >= 0 && age <= lifetimeSeconds * 1_000 ? attempt : undefined
  } catch {
    return undefined
  }
}

function nameOf({ isSecure, port }: PageOrigin): string {
  return isSecure ? '__Host-latchkey-sign-in' : `latchkey-sign-in-${port}`
}

function cookie(page: PageOrigin, text: string, seconds: number): string {
  return `${nameOf(page)}=${text}; Max-Age=${seconds}; Path=/; HttpOnly; SameSite=Lax${page.isSecure ? '; Secure' : ''}`
}
