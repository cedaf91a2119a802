// Finds the master key that opens a database: the one in place, or the next one where a replacement was interrupted after its commit. A key
// is the right one when it decrypts the signing keys in the database, which always has at least one.
import type { SigningKey as SigningKeyRow } from '../../db/schema/schema.ts'
import { Fault } from '../fault.ts'
import { decrypt, importMasterKey, keyFileFault, type MasterKeySource } from './master-key.ts'
import { installNextKeyFile, listOldKeyFiles, readKeyFile, readNextKeyFile } from './master-key-file.ts'

/** `isFinished`: finding the key finished an interrupted replacement. */
export type FoundMasterKey = { key: CryptoKey; hex: string; isFinished: boolean }

/** Why no key was found. `isLost`: the file is missing or has a key of another database; otherwise it cannot be read. */
export type NoMasterKey = { fault: Fault; isLost: boolean }

const replaceLost = 'if it is lost, stop the server and run: latchkey master-key replace --lost'

/**
 * The master key that decrypts these signing keys.
 * @throws Fault `configuration` that says what to run when no key does
 */
export async function openMasterKey(source: MasterKeySource, rows: SigningKeyRow[]): Promise<CryptoKey> {
  return (await openMasterKeyText(source, rows)).key
}

/**
 * The same, with its hexadecimal digits.
 * @throws Fault `configuration` that says what to run when no key does
 */
export async function openMasterKeyText(
  source: MasterKeySource,
  rows: SigningKeyRow[],
): Promise<Pick<FoundMasterKey, 'key' | 'hex'>> {
  const found = await findMasterKey(source, rows)
  if ('fault' in found) throw found.fault
  return found
}

export async function findMasterKey(
  source: MasterKeySource,
  rows: SigningKeyRow[],
): Promise<FoundMasterKey | NoMasterKey> {
  if (source.kind === 'value') {
    const key = await keyThatOpens(source.hex, rows)
    return key === undefined ? notFitting('LATCHKEY_MASTER_KEY') : { key, hex: source.hex, isFinished: false }
  }
  const { path } = source
  const read = readKeyFile(path)
  const key = 'hex' in read ? await keyThatOpens(read.hex, rows) : undefined
  if ('hex' in read && key !== undefined) return { key, hex: read.hex, isFinished: false }
  const next = readNextKeyFile(path)
  const nextKey = next === undefined ? undefined : await keyThatOpens(next, rows)
  if (next !== undefined && nextKey !== undefined) {
    // Another process may have put it in place by now.
    if (readNextKeyFile(path) === next) installNextKeyFile(path)
    return { key: nextKey, hex: next, isFinished: true }
  }
  if ('hex' in read) return notFitting(JSON.stringify(path), await hintFor(path, rows))
  const isLost = read.error === undefined || (read.error as NodeJS.ErrnoException).code === 'ENOENT'
  return { fault: keyFileFault(path, { ...read, hint: isLost ? await hintFor(path, rows) : undefined }), isLost }
}

/** Whether the master key, or the next one of an interrupted replacement, decrypts these signing keys. Changes no file. */
export async function isFittingMasterKey(source: MasterKeySource, rows: EncryptedKey[]): Promise<boolean> {
  return (await findFittingKey(source, rows)) !== undefined
}

/** The same as 64 hex digits; undefined when none fits. */
export async function findFittingKey(source: MasterKeySource, rows: EncryptedKey[]): Promise<string | undefined> {
  const candidates = source.kind === 'value' ? [source.hex] : [hexIn(source.path), readNextKeyFile(source.path)]
  for (const hex of candidates) if (hex !== undefined && (await keyThatOpens(hex, rows)) !== undefined) return hex
  return undefined
}

function hexIn(path: string): string | undefined {
  const read = readKeyFile(path)
  return 'hex' in read ? read.hex : undefined
}

type EncryptedKey = Pick<SigningKeyRow, 'id' | 'privateKeyEncrypted'>

/** The key, if it decrypts all these signing keys. */
export async function keyThatOpens(hex: string, rows: EncryptedKey[]): Promise<CryptoKey | undefined> {
  const key = await importMasterKey(hex)
  try {
    for (const { id, privateKeyEncrypted } of rows.filter(hasPrivateKey)) await decrypt(key, id, privateKeyEncrypted)
    return key
  } catch {
    return undefined
  }
}

/** A signing key whose master key was lost has no private key. */
export function hasPrivateKey({ privateKeyEncrypted }: EncryptedKey): boolean {
  return privateKeyEncrypted !== ''
}

function notFitting(place: string, hint = `; ${replaceLost}`): NoMasterKey {
  const message = `The master key does not fit this database: ${place} does not decrypt the signing keys; use the master key that encrypted them`
  return { fault: new Fault('configuration', message, { hint }), isLost: true }
}

/** A restored older database needs the key of its time. */
async function hintFor(path: string, rows: SigningKeyRow[]): Promise<string> {
  for (const old of listOldKeyFiles(path)) {
    const read = readKeyFile(old)
    if ('hex' in read && (await keyThatOpens(read.hex, rows)) !== undefined)
      return `. The key in ${JSON.stringify(old)} opens it: set LATCHKEY_MASTER_KEY_FILE to that file`
  }
  return `; ${replaceLost}`
}
