// The settings of a server database: its URL, its token, the certificates that it is trusted by, and the one that it trusts.
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { hasCopies } from '../../db/remote/kinds.ts'
import { Fault } from '../fault.ts'
import { describeReadFailure } from '../runtime/file-access.ts'
import { parseCredential } from './setting-values.ts'
import type { SettingName } from './settings.ts'

/**
 * Where a server database is. The token is a secret. `caFile`: certificates to trust instead of the public ones. `client`: the
 * certificate that this node shows to the server, and its private key.
 */
export type DatabaseServer = {
  url: string
  token: string | undefined
  caFile: string | undefined
  client: { certFile: string; keyFile: string } | undefined
  /** How long inference is served while the server is away, and where usage waits meanwhile; undefined for not at all. */
  grace: DatabaseGrace | undefined
}

export type DatabaseGrace = { milliseconds: number; folder: string }

/** @throws Fault `configuration` */
export function databaseServer(
  read: (name: SettingName) => string | undefined,
  url: string,
  graceMilliseconds: number,
): DatabaseServer {
  const [token, file] = [read('LATCHKEY_DATABASE_TOKEN'), read('LATCHKEY_DATABASE_TOKEN_FILE')]
  if (token !== undefined && file !== undefined)
    throw new Fault(
      'configuration',
      'LATCHKEY_DATABASE_TOKEN and LATCHKEY_DATABASE_TOKEN_FILE are both set: set one of them',
    )
  if (read('LATCHKEY_BACKUP_DIR') !== undefined && !hasCopies(url))
    throw new Fault(
      'configuration',
      'LATCHKEY_BACKUP_DIR is set, but this database server makes no copies while it runs: leave it out, and take snapshots of the server',
    )
  const caFile = read('LATCHKEY_DATABASE_CA_FILE')
  return {
    url,
    // A secret of Kubernetes that was made from a file ends with its line feed.
    token: file === undefined ? token && parseCredential('LATCHKEY_DATABASE_TOKEN', token.trim()) : readTokenFile(file),
    caFile: caFile === undefined ? undefined : resolve(caFile),
    client: clientCertificate(read('LATCHKEY_DATABASE_CERT_FILE'), read('LATCHKEY_DATABASE_KEY_FILE')),
    grace: graceMilliseconds === 0 ? undefined : { milliseconds: graceMilliseconds, folder: graceFolder(read) },
  }
}

function graceFolder(read: (name: SettingName) => string | undefined): string {
  const [folder, keyFile] = [read('LATCHKEY_DATABASE_GRACE_DIR'), read('LATCHKEY_MASTER_KEY_FILE')]
  if (folder !== undefined) return resolve(folder)
  if (keyFile !== undefined) return dirname(resolve(keyFile))
  throw new Fault(
    'configuration',
    'LATCHKEY_DATABASE_GRACE is set without LATCHKEY_DATABASE_GRACE_DIR: set a folder that survives restarts, where usage waits',
  )
}

function clientCertificate(certFile: string | undefined, keyFile: string | undefined): DatabaseServer['client'] {
  if (certFile === undefined && keyFile === undefined) return undefined
  if (certFile !== undefined && keyFile !== undefined) return { certFile: resolve(certFile), keyFile: resolve(keyFile) }
  throw new Fault(
    'configuration',
    'LATCHKEY_DATABASE_CERT_FILE and LATCHKEY_DATABASE_KEY_FILE belong together: set both of them, or neither',
  )
}

function readTokenFile(path: string): string {
  const text = readText('LATCHKEY_DATABASE_TOKEN_FILE', path).trim()
  if (/^[\x21-\x7e]+$/.test(text)) return text
  throw new Fault(
    'configuration',
    `LATCHKEY_DATABASE_TOKEN_FILE is ${JSON.stringify(path)}, which does not hold a token: one line without spaces`,
  )
}

/**
 * The text of a file that a setting names.
 * @throws Fault `configuration`
 */
export function readText(setting: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const why = describeReadFailure(path, cause)
    throw new Fault('configuration', `${setting} is ${JSON.stringify(path)}, which cannot be read: ${why}`)
  }
}
