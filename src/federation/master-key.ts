// The master key encrypts the private signing keys at rest (AES-256-GCM). It comes from a file or the environment and is never stored beside what it protects in the database.
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describeDenial } from '../../db/access.ts'
import type { MasterKeySource } from '../config.ts'
import { Fault } from '../fault.ts'

/**
 * Reads the master key. With `create`, a missing file is made with mode 0600; two processes that race agree on one key.
 * @throws Fault `configuration` when the file is missing or is not 64 hex digits
 */
export async function readMasterKey(source: MasterKeySource, { create }: { create: boolean }): Promise<CryptoKey> {
  const hex = source.kind === 'value' ? source.hex : readKeyFile(source.path, create)
  return crypto.subtle.importKey('raw', Buffer.from(hex, 'hex'), 'AES-GCM', false, ['encrypt', 'decrypt'])
}

function readKeyFile(path: string, create: boolean): string {
  if (create) createKeyFile(path)
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new Fault(
      'configuration',
      `The master key file cannot be read: ${describeDenial(path, { toWrite: false }) ?? whyAbsent(path, error as NodeJS.ErrnoException)}`,
      { cause: error },
    )
  }
  if (!/^[0-9a-fA-F]{64}$/.test(text))
    throw new Fault('configuration', `The master key file ${JSON.stringify(path)} must hold 64 hex digits`)
  return text
}

function whyAbsent(path: string, { code }: NodeJS.ErrnoException): string {
  return `${JSON.stringify(path)} (${code}); put the file that belongs to this database there, or name it with LATCHKEY_MASTER_KEY_FILE`
}

/** Writes the whole key aside and links it into place, so that nobody reads half a key and an existing one is never replaced. */
function createKeyFile(path: string): void {
  const draft = `${path}.${crypto.randomUUID()}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const hex = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')
    writeFileSync(draft, `${hex}\n`, { mode: 0o600, flush: true })
    chmodSync(draft, 0o600)
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
    throw new Fault(
      'configuration',
      `The master key file ${JSON.stringify(path)} cannot be made: ${(error as Error).message}`,
      { cause: error },
    )
  } finally {
    rmSync(draft, { force: true })
  }
}

/** `iv.ciphertext` in base64url. The context (a key's id) is authenticated: a ciphertext moved to another row does not decrypt. */
export async function encrypt(masterKey: CryptoKey, context: string, plain: Uint8Array<ArrayBuffer>): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const sealed = await crypto.subtle.encrypt(
    { name: 'AES-GCM', iv, additionalData: Buffer.from(context) },
    masterKey,
    plain,
  )
  return `${Buffer.from(iv).toString('base64url')}.${Buffer.from(sealed).toString('base64url')}`
}

/** @throws an error when the key, the context or a bit of the text is another one */
export async function decrypt(masterKey: CryptoKey, context: string, text: string): Promise<ArrayBuffer> {
  const [iv = '', sealed = ''] = text.split('.')
  const parameters = { name: 'AES-GCM', iv: Buffer.from(iv, 'base64url'), additionalData: Buffer.from(context) }
  return crypto.subtle.decrypt(parameters, masterKey, Buffer.from(sealed, 'base64url'))
}
