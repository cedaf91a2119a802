// Which master key opens a database: the one in place, or the one that waits where a replacement was interrupted after its commit. Whether
// a key is the right one is decided by the signing keys in the database, of which there is always one.
import type { SigningKey as SigningKeyRow } from '../../db/schema.ts'
import { Fault } from '../fault.ts'
import { decrypt, importMasterKey, keyFileFault, type MasterKeySource } from './master-key.ts'
import { installNextKeyFile, listOldKeyFiles, readKeyFile, readNextKeyFile } from './master-key-file.ts'

/** `isFinished`: it was put in place just now, which ends an interrupted replacement. */
export type FoundMasterKey = { key: CryptoKey; hex: string; isFinished: boolean }

/** Why there is none. `isLost`: what is in place is no key of this database, or nothing is there; otherwise it may be, but cannot be read. */
export type NoMasterKey = { fault: Fault; isLost: boolean }

const replaceLost = 'if it is lost, stop the server and run: latchkey master-key replace --lost'

/**
 * The master key that opens these signing keys.
 * @throws Fault `configuration` when there is none, which says what to run
 */
export async function openMasterKey(source: MasterKeySource, rows: SigningKeyRow[]): Promise<CryptoKey> {
  const found = await findMasterKey(source, rows)
  if ('fault' in found) throw found.fault
  return found.key
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
    // Somebody else may have put it in place by now.
    if (readNextKeyFile(path) === next) installNextKeyFile(path)
    return { key: nextKey, hex: next, isFinished: true }
  }
  if ('hex' in read) return notFitting(JSON.stringify(path), await hintFor(path, rows))
  const isLost = read.error === undefined || (read.error as NodeJS.ErrnoException).code === 'ENOENT'
  return { fault: keyFileFault(path, { ...read, hint: isLost ? await hintFor(path, rows) : undefined }), isLost }
}

/** The key, if all these signing keys open under it. */
export async function keyThatOpens(hex: string, rows: SigningKeyRow[]): Promise<CryptoKey | undefined> {
  const key = await importMasterKey(hex)
  try {
    for (const { id, privateKeyEncrypted } of rows.filter(hasPrivateKey)) await decrypt(key, id, privateKeyEncrypted)
    return key
  } catch {
    return undefined
  }
}

/** The private half of a key whose master key was lost is gone. */
export function hasPrivateKey({ privateKeyEncrypted }: SigningKeyRow): boolean {
  return privateKeyEncrypted !== ''
}

function notFitting(place: string, hint = `; ${replaceLost}`): NoMasterKey {
  const message = `The master key does not fit this database: the signing keys cannot be decrypted with ${place}; use the master key that they were encrypted with`
  return { fault: new Fault('configuration', message, { hint }), isLost: true }
}

/** Whoever restores an older database needs the key of that time. */
async function hintFor(path: string, rows: SigningKeyRow[]): Promise<string> {
  for (const old of listOldKeyFiles(path)) {
    const read = readKeyFile(old)
    if ('hex' in read && (await keyThatOpens(read.hex, rows)) !== undefined)
      return `. The key in ${JSON.stringify(old)} opens it: name that file with LATCHKEY_MASTER_KEY_FILE`
  }
  return `; ${replaceLost}`
}
