// API keys (reference: Credentials): their text, their hash, the label by which people recognize them, and whether one
// is usable. Knows no database.
import { hash } from 'node:crypto'
import type { ApiKey } from '../../db/schema/schema.ts'
import { Fault, type FaultSubject } from '../fault.ts'
import { type AllowLists, compileAllowLists } from './allow-lists.ts'

/** A key as the registry holds it. */
export type Key = Readonly<ApiKey> & { readonly allowed: AllowLists }

export function compileKey(row: ApiKey): Key {
  return Object.freeze({ ...row, allowed: compileAllowLists(row) })
}

const prefix = 'sk-lk-v1-'
const keyText = /^sk-lk-v1-[0-9a-f]{64}$/

/** A new key from the system's random source: `sk-lk-v1-` and 64 hex digits. */
export function createApiKeyText(): string {
  return prefix + Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')
}

export function isApiKeyText(text: string): boolean {
  return keyText.test(text)
}

/** The SHA-256 of a key in hex: all that is stored, and its public identifier. */
export function hashApiKey(text: string): string {
  return hash('sha256', text, 'hex')
}

/** The first and last digits, e.g. `sk-lk-v1-0a1b…9f8e`: enough to recognize a key, far too little to use it. */
export function labelApiKey(text: string): string {
  return `${text.slice(0, prefix.length + 4)}…${text.slice(-4)}`
}

const pinnedLabel = 'sha256:'

/** The label of a key of which only the hash is known. */
export function labelPinned(hash: string): string {
  return `${pinnedLabel}${hash.slice(0, 8)}…`
}

/** Whether somebody else made the key, and only its hash was given. */
export function isPinned({ label }: Pick<ApiKey, 'label'>): boolean {
  return label.startsWith(pinnedLabel)
}

export const keyStates = ['enabled', 'disabled', 'expired'] as const

/** The state of a key that is not deleted. */
export function keyStateOf(
  { disabled, expiresAt }: Pick<ApiKey, 'disabled' | 'expiresAt'>,
  now: number,
): (typeof keyStates)[number] {
  if (disabled) return 'disabled'
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'enabled'
}

/**
 * `key` is undefined if its id was known and the registry has it no longer.
 * @throws Fault `unauthorized` when the key is deleted, disabled or expired at `now` (milliseconds)
 */
export function checkKeyState<SomeKey extends Readonly<ApiKey>>(key: SomeKey | undefined, now: number): SomeKey {
  if (key === undefined || key.deletedAt !== null) throw invalidCredential('key_deleted')
  const state = keyStateOf(key, now)
  if (state === 'enabled') return key
  throw invalidCredential(`key_${state}`, { subject: { kind: 'key', id: key.id } })
}

/**
 * A key has two texts until the grace of its rotation ends. Returns which of them was used, by its hash; undefined while there is one only.
 * @throws Fault `unauthorized` when its grace has ended at `now` (milliseconds)
 */
export function checkKeyText({ id, previousHash, previousUntil }: Key, hash: string, now: number): string | undefined {
  if (previousUntil > now) return hash
  if (hash !== previousHash) return undefined
  throw invalidCredential('key_rotated', { subject: { kind: 'key', id } })
}

/** The caller sees only the message, which may depend on the request alone; the reason goes to the log. */
export function invalidCredential(
  reason: string,
  { message = 'Invalid credentials', subject }: { message?: string; subject?: FaultSubject } = {},
): Fault {
  return new Fault('unauthorized', message, {
    reason,
    subject,
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
  })
}
