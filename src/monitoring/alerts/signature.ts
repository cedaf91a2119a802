// Signatures of webhooks, and their secrets (Standard Webhooks 1.0.0, standardwebhooks.com). It sends nothing.
import { createHmac, randomBytes } from 'node:crypto'

const prefix = 'whsec_'
const [bytesMin, bytesMax, bytesOfNew] = [24, 64, 32]

export function newSecret(): string {
  return prefix + randomBytes(bytesOfNew).toString('base64')
}

/** Returns what is wrong with a secret, or undefined. */
export function secretProblem(text: string): string | undefined {
  const bytes = bytesOf(text)
  if (bytes === undefined) return 'must be base64, with or without whsec_ in front'
  if (bytes.length < bytesMin || bytes.length > bytesMax) return `must have ${bytesMin} to ${bytesMax} bytes in base64`
  return undefined
}

/** A secret with the one before it, which signs too until a time in milliseconds, as one text. */
export function joinSecrets(secret: string, before: string | undefined, until: number): string {
  return before === undefined ? secret : [secret, before, until].join(' ')
}

/** The secrets in such a text that sign at a time in milliseconds, the newest first. */
export function secretsIn(text: string, now: number): string[] {
  const [secret = '', before, until] = text.split(' ')
  return before !== undefined && now < Number(until) ? [secret, before] : [secret]
}

/**
 * The headers of an event, with a signature for each secret: receivers accept any of them. `at` in milliseconds: of this attempt, since
 * receivers refuse old requests.
 */
export function signedHeaders(
  secrets: readonly string[],
  id: string,
  at: number,
  body: string,
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000))
  const signatures = secrets.map((secret) => {
    const mac = createHmac('sha256', bytesOf(secret) ?? '').update(`${id}.${timestamp}.${body}`)
    return `v1,${mac.digest('base64')}`
  })
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

function bytesOf(text: string): Buffer | undefined {
  const base64 = text.startsWith(prefix) ? text.slice(prefix.length) : text
  const bytes = Buffer.from(base64, 'base64')
  return bytes.toString('base64').replace(/=+$/, '') === base64.replace(/=+$/, '') ? bytes : undefined
}
