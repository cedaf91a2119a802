// The master key encrypts private signing keys and upstream credentials at rest (AES-256-GCM). It comes from a file or the environment and
// is never stored in the database.

import { Fault } from '../fault.ts'
import { describeDenial } from '../runtime/file-access.ts'
import { createKeyFile, readKeyFile } from './master-key-file.ts'

export type MasterKeySource = { kind: 'value'; hex: string } | { kind: 'file'; path: string; isDefault: boolean }

/**
 * Reads the master key without checking that it opens the database. With `create`, a missing file is created.
 * @throws Fault `configuration` when the file is missing or is not 64 hex digits
 */
export async function readMasterKey(source: MasterKeySource, { create }: { create: boolean }): Promise<CryptoKey> {
  if (source.kind === 'value') return importMasterKey(source.hex)
  if (create) createKeyFile(source.path)
  const read = readKeyFile(source.path)
  if ('hex' in read) return importMasterKey(read.hex)
  throw keyFileFault(source.path, read)
}

/** 64 hex digits as a key that cannot be exported. */
export function importMasterKey(hex: string): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', Buffer.from(hex, 'hex'), 'AES-GCM', false, ['encrypt', 'decrypt'])
}

/** Explains to an admin why a file has no key, without quoting its text. */
export function keyFileFault(path: string, { error, hint }: { error?: Error; hint?: string }): Fault {
  if (error === undefined)
    return new Fault('configuration', `The master key file ${JSON.stringify(path)} must contain 64 hex digits`, {
      hint,
    })
  const why = describeDenial(path, { toWrite: false }) ?? whyAbsent(path, error)
  return new Fault('configuration', `The master key file cannot be read: ${why}`, { cause: error, hint })
}

function whyAbsent(path: string, { code }: NodeJS.ErrnoException): string {
  return `${JSON.stringify(path)} (${code}); put the key file of this database there, or set LATCHKEY_MASTER_KEY_FILE to it`
}

/** `iv.ciphertext` in base64url. The context (a key's id) is authenticated: a ciphertext moved to another row does not decrypt. */
export async function encrypt(masterKey: CryptoKey, context: string, plain: BufferSource): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const sealed = await crypto.subtle.encrypt(
    { name: 'AES-GCM', iv, additionalData: Buffer.from(context) },
    masterKey,
    plain,
  )
  return `${Buffer.from(iv).toString('base64url')}.${Buffer.from(sealed).toString('base64url')}`
}

/** @throws an error when the key, the context or any bit of the text differs */
export async function decrypt(masterKey: CryptoKey, context: string, text: string): Promise<ArrayBuffer> {
  const [iv = '', sealed = ''] = text.split('.')
  const parameters = { name: 'AES-GCM', iv: Buffer.from(iv, 'base64url'), additionalData: Buffer.from(context) }
  return crypto.subtle.decrypt(parameters, masterKey, Buffer.from(sealed, 'base64url'))
}
