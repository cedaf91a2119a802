// The ES256 keys that sign access tokens: created, stored encrypted, decrypted at start, published as a JWKS (reference: Signing keys).
import { createPrivateKey } from 'node:crypto'
import { exportJWK, generateKeyPair } from 'jose'
import type { SigningKey as SigningKeyRow } from '../../db/schema/schema.ts'
import { Fault } from '../fault.ts'
import { accessTokenKeysCacheSeconds, accessTokenLifetimeSecondsMax, publicationMarginSeconds } from '../limits.ts'
import type { PrivateKey } from './jws.ts'
import { hasPrivateKey } from './keyring.ts'
import { decrypt, encrypt } from './master-key.ts'

export type PublicSigningJwk = { alg: 'ES256'; crv: 'P-256'; kid: string; kty: 'EC'; use: 'sig'; x: string; y: string }

export type SigningKey = PrivateKey & {
  kid: string
  activeAt: number
  retiredAt: number | null
  revoked: boolean
  publicKey: CryptoKey
  publicJwk: PublicSigningJwk
}

/**
 * Times in milliseconds. A key is published when it is created, signs from `activeAt` until a newer key does, and ends at `retiredAt`. It
 * signs no token that would outlive it.
 */
export type SigningKeys = {
  /** The key that signs at a time: the newest that is active and not about to retire. */
  current: (now: number) => SigningKey
  byKid: (kid: string, now: number) => SigningKey | undefined
  /** `{ "keys": [...] }` with public members only. */
  jwks: (now: number) => string
  /** Replaces the keys with these rows, after a change. */
  load: (rows: SigningKeyRow[]) => Promise<void>
}

/** A new key pair as a row, the private key encrypted under the master key. Times in milliseconds. */
export async function createSigningKey(masterKey: CryptoKey, now: number, activeAt = now): Promise<SigningKeyRow> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const { x = '', y = '' } = await exportJWK(publicKey)
  const kid = crypto.randomUUID()
  const publicJwk: PublicSigningJwk = { alg: 'ES256', crv: 'P-256', kid, kty: 'EC', use: 'sig', x, y }
  const pkcs8 = new Uint8Array(await crypto.subtle.exportKey('pkcs8', privateKey))
  return {
    id: kid,
    algorithm: 'ES256',
    publicJwk: JSON.stringify(publicJwk),
    privateKeyEncrypted: await encrypt(masterKey, kid, pkcs8),
    createdAt: now,
    activeAt,
    retiredAt: null,
    revoked: false,
  }
}

export const signingKeyStates = ['next', 'signing', 'retiring', 'retired'] as const

/** The stage of a key in its life cycle. */
export function signingKeyState(
  { activeAt, retiredAt, revoked }: Pick<SigningKeyRow, 'activeAt' | 'retiredAt' | 'revoked'>,
  now: number,
): (typeof signingKeyStates)[number] {
  if (revoked || (retiredAt !== null && retiredAt <= now)) return 'retired'
  if (retiredAt !== null && retiredAt - retirementMilliseconds <= now) return 'retiring'
  return activeAt > now ? 'next' : 'signing'
}

/** Whether a key signs, or waits no longer than a new one does. Otherwise it was made while the clock was ahead. */
export function isDue({ activeAt }: Pick<SigningKeyRow, 'activeAt'>, now: number): boolean {
  return activeAt <= now + publicationMilliseconds
}

/** A verifier may cache the published set this long, so a new key is published this long before it signs. */
export const publicationMilliseconds = (accessTokenKeysCacheSeconds + publicationMarginSeconds) * 1_000
/** The last token of a key is valid for its lifetime, and verifiers may cache the key set. */
export const retirementMilliseconds = (accessTokenLifetimeSecondsMax + accessTokenKeysCacheSeconds) * 1_000

/**
 * Decrypts and imports the keys of a database that have a private key.
 * @throws Fault `configuration` when the database has none, or the master key does not fit
 */
export async function openSigningKeys(rows: SigningKeyRow[], masterKey: CryptoKey): Promise<SigningKeys> {
  if (!rows.some(hasPrivateKey))
    throw new Fault('configuration', 'The database has no signing key; restore it from a backup')
  let keys = await openAll(rows, masterKey)
  return {
    current: (now) => signingKeyAt(keys, now),
    byKid: (kid, now) => inForce(keys, now).find((key) => key.kid === kid),
    jwks: (now) => JSON.stringify({ keys: inForce(keys, now).map(({ publicJwk }) => publicJwk) }),
    load: async (changed) => {
      keys = await openAll(changed, masterKey)
    },
  }
}

/** The newest first. */
async function openAll(rows: SigningKeyRow[], masterKey: CryptoKey): Promise<SigningKey[]> {
  const keys = await Promise.all(rows.filter(hasPrivateKey).map((row) => openSigningKey(row, masterKey)))
  return keys.toSorted((one, other) => other.activeAt - one.activeAt)
}

function inForce(newestFirst: SigningKey[], now: number): SigningKey[] {
  return newestFirst.filter((key) => signingKeyState(key, now) !== 'retired')
}

function signingKeyAt(newestFirst: SigningKey[], now: number): SigningKey {
  const usable = inForce(newestFirst, now)
  // After the clock was set back, possibly no key is active yet.
  const key = usable.find((each) => signingKeyState(each, now) === 'signing') ?? usable.at(-1)
  if (key === undefined) throw new Error('Every signing key is retired')
  return key
}

async function openSigningKey(row: SigningKeyRow, masterKey: CryptoKey): Promise<SigningKey> {
  const publicJwk = JSON.parse(row.publicJwk) as PublicSigningJwk
  const curve = { name: 'ECDSA', namedCurve: 'P-256' }
  let pkcs8: ArrayBuffer
  try {
    pkcs8 = await decrypt(masterKey, row.id, row.privateKeyEncrypted)
  } catch (cause) {
    throw new Fault(
      'configuration',
      'The master key does not fit this database: it does not decrypt a signing key; use the key that encrypted it',
      { cause },
    )
  }
  return {
    kid: row.id,
    activeAt: row.activeAt,
    retiredAt: row.retiredAt,
    revoked: row.revoked,
    privateKey: await crypto.subtle.importKey('pkcs8', pkcs8, curve, false, ['sign']),
    privateKeyObject: createPrivateKey({ key: Buffer.from(pkcs8), format: 'der', type: 'pkcs8' }),
    publicKey: await crypto.subtle.importKey('jwk', publicJwk, curve, false, ['verify']),
    publicJwk,
  }
}
