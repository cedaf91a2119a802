// The TLS certificate and its private key as files: read, checked together, and watched for changes.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { Fault } from '../fault.ts'
import { describeReadFailure } from '../runtime/file-access.ts'
import type { TlsPair } from '../runtime/listener.ts'
import type { TlsFiles } from '../settings/config.ts'
import { type Validity, validityOf } from '../values/certificates.ts'

/** `stamp` differs when a file was written or replaced. */
export type LoadedPair = TlsPair & Validity & { stamp: string; subject: string }

type ReadOptions = { databasePath: string; now: number }

/**
 * The pair in these files. The first certificate is the server's; those behind it lead to its root.
 * @throws Fault `configuration` when a file cannot be read, the key does not fit, or the certificate is not valid now
 */
export function readTlsPair(files: TlsFiles, { databasePath, now }: ReadOptions): LoadedPair {
  const stamp = stampOf(files)
  const cert = readPem('LATCHKEY_TLS_CERT_FILE', files.certFile, databasePath)
  const key = readPem('LATCHKEY_TLS_KEY_FILE', files.keyFile, databasePath)
  const certificate = parseCertificate(files.certFile, cert)
  if (!certificate.checkPrivateKey(parseKey(files.keyFile, key)))
    throw wrong('LATCHKEY_TLS_KEY_FILE', files.keyFile, `it is not the key of the certificate in ${files.certFile}`)
  const { startsAt, expiresAt } = validityOf(certificate)
  if (now < startsAt)
    throw wrong('LATCHKEY_TLS_CERT_FILE', files.certFile, `it is not valid before ${timeOf(startsAt)}; check the clock`)
  if (now >= expiresAt)
    throw wrong('LATCHKEY_TLS_CERT_FILE', files.certFile, `it expired at ${timeOf(expiresAt)}; renew the certificate`)
  return { cert, key, stamp, subject: certificate.subject, startsAt, expiresAt }
}

/** Changes with the files, also when a link leads elsewhere; constant while a file is missing or out of reach. Never fails. */
export function stampOf({ certFile, keyFile }: TlsFiles): string {
  const stamps = [certFile, keyFile].map((path) => {
    try {
      const { mtimeMs, ctimeMs, ino, size } = statSync(path)
      return [mtimeMs, ctimeMs, ino, size].join(':')
    } catch (error) {
      return (error as NodeJS.ErrnoException).code
    }
  })
  return stamps.join(' ')
}

type FileSetting = 'LATCHKEY_TLS_CERT_FILE' | 'LATCHKEY_TLS_KEY_FILE'

function wrong(name: FileSetting, path: string, rule: string): Fault {
  return new Fault('configuration', `${name} is ${JSON.stringify(path)}, which cannot be used: ${rule}`)
}

function readPem(name: FileSetting, path: string, databasePath: string): string {
  try {
    const found = statSync(path)
    const database = statSync(databasePath, { throwIfNoEntry: false })
    if (!found.isFile()) throw wrong(name, path, 'it is not a regular file')
    // Closing any descriptor of the database file would drop this process's lock on it.
    if (found.ino === database?.ino && found.dev === database.dev) throw wrong(name, path, 'it is the database')
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw error instanceof Fault ? error : wrong(name, path, describeReadFailure(path, error))
  }
}

function parseCertificate(path: string, pem: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch {
    throw wrong('LATCHKEY_TLS_CERT_FILE', path, 'it must begin with a certificate in PEM')
  }
}

function parseKey(path: string, pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    const rule = pem.includes('ENCRYPTED') ? 'the key must not have a passphrase' : 'it must have a private key in PEM'
    throw wrong('LATCHKEY_TLS_KEY_FILE', path, rule)
  }
}

function timeOf(time: number): string {
  return new Date(time).toISOString()
}
