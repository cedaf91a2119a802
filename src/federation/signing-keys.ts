// The ES256 keys that sign access tokens: made here, kept encrypted, opened at the start, published as a JWKS (interface §4.2).
import { exportJWK, generateKeyPair } from 'jose'
import type { SigningKey as SigningKeyRow } from '../../db/schema.ts'
import { Fault } from '../fault.ts'
import { decrypt, encrypt } from './master-key.ts'

export type PublicSigningJwk = { alg: 'ES256'; crv: 'P-256'; kid: string; kty: 'EC'; use: 'sig'; x: string; y: string }

export type SigningKey = {
  kid: string
  activeAt: number
  privateKey: CryptoKey
  publicKey: CryptoKey
  publicJwk: PublicSigningJwk
}

export type SigningKeys = {
  /** The key that signs at a time: the newest that is active by then. */
  current: (now: number) => SigningKey
  byKid: (kid: string) => SigningKey | undefined
  /** `{ "keys": [...] }` with nothing private, as text, since it is asked for more often than it changes. */
  jwks: string
}

/** A new key pair as a row, its private half encrypted under the master key. `now` in milliseconds. */
export async function createSigningKey(masterKey: CryptoKey, now: number): Promise<SigningKeyRow> {
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
    activeAt: now,
    retiredAt: null,
  }
}

/**
 * Decrypts and imports the keys of a database.
 * @throws Fault `configuration` when there is none, or the master key is not the one that belongs to the database
 */
export async function openSigningKeys(rows: SigningKeyRow[], masterKey: CryptoKey): Promise<SigningKeys> {
  if (rows.length === 0)
    throw new Fault('configuration', 'The database holds no signing key; restore it from a backup, or make a new one')
  const keys = await Promise.all(rows.map((row) => openSigningKey(row, masterKey)))
  const newestFirst = keys.toSorted((one, other) => other.activeAt - one.activeAt)
  const byKid = new Map(keys.map((key) => [key.kid, key]))
  return {
    current: (now) => {
      const key = newestFirst.find(({ activeAt }) => activeAt <= now) ?? newestFirst.at(-1)
      if (key === undefined) throw new Error('The database holds no signing key')
      return key
    },
    byKid: (kid) => byKid.get(kid),
    jwks: JSON.stringify({ keys: keys.map(({ publicJwk }) => publicJwk) }),
  }
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
      'The master key does not fit this database: the signing keys cannot be decrypted with it; use the master key that the database was made with',
      { cause },
    )
  }
  return {
    kid: row.id,
    activeAt: row.activeAt,
    privateKey: await crypto.subtle.importKey('pkcs8', pkcs8, curve, false, ['sign']),
    publicKey: await crypto.subtle.importKey('jwk', publicJwk, curve, false, ['verify']),
    publicJwk,
  }
}
