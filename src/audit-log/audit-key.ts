// The key that signs checkpoints. It is not a signing key of access tokens: those rotate and are revoked for other reasons. Its private half
// is in the database, encrypted under the master key.
import { randomBytes } from 'node:crypto'
import type { AuditKey } from '../../db/schema/log-schema.ts'
import { decrypt, encrypt } from '../tokens/master-key.ts'
import {
  createSignerKey,
  createVerifierKey,
  publicKeyFrom,
  type SignerKey,
  type VerifierKey,
} from './transparency/note.ts'

const seedBytes = 32

/** A new key as a row. */
export async function createAuditKey(masterKey: CryptoKey, createdAt: number): Promise<AuditKey> {
  const id = crypto.randomUUID()
  const seed = randomBytes(seedBytes)
  const { publicKey } = createSignerKey(id, 'log', seed)
  const { x = '' } = publicKey.export({ format: 'jwk' })
  return { id, publicKey: x, privateKeyEncrypted: await encrypt(masterKey, id, seed), createdAt, retiredAt: null }
}

/** The key under the name of a log. */
export function verifierOf({ publicKey }: Pick<AuditKey, 'publicKey'>, origin: string): VerifierKey {
  return createVerifierKey(origin, 'log', publicKeyFrom(Buffer.from(publicKey, 'base64url')))
}

/** The key that signs: the newest without an end. Undefined without one that has its private half. */
export function currentAuditKey(keys: readonly AuditKey[]): AuditKey | undefined {
  return keys.findLast(({ retiredAt, privateKeyEncrypted }) => retiredAt === null && privateKeyEncrypted !== '')
}

/** @throws Error if the master key does not decrypt it */
export async function openAuditKey(masterKey: CryptoKey, key: AuditKey, origin: string): Promise<SignerKey> {
  const seed = new Uint8Array(await decrypt(masterKey, key.id, key.privateKeyEncrypted))
  return createSignerKey(origin, 'log', seed)
}
