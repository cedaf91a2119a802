// The files of a TLS pair: what cannot be served is refused with its reason, before anything listens.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readTlsPair, stampOf } from '../../src/server/tls-files.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { type CertificateFiles, hasOpenssl, makeCertificate } from '../support/tls.ts'

let folder: ReturnType<typeof temporaryFolder>
let one: CertificateFiles
let two: CertificateFiles
beforeAll(() => {
  folder = temporaryFolder()
  if (hasOpenssl) [one, two] = [makeCertificate(folder.path, 'one'), makeCertificate(folder.path, 'two')]
})
afterAll(() => folder.remove())

const day = 24 * 60 * 60 * 1_000
const pathOf = (name: string) => join(folder.path, name)
const write = (name: string, text: string) => {
  writeFileSync(pathOf(name), text)
  return pathOf(name)
}
/** As for a file in a closed folder, the system reports more than that it is missing; this also stops root. */
const linkToItself = (name: string) => {
  symlinkSync(pathOf(name), pathOf(name))
  return pathOf(name)
}
const read = (files: Partial<CertificateFiles> = {}, now = Date.now()) =>
  readTlsPair({ ...one, ...files }, { databasePath: pathOf('latchkey.db'), now })

describe.skipIf(!hasOpenssl)('a TLS pair (needs openssl)', () => {
  test('that fits and is in date is read, with the end of its validity', () => {
    const { cert, key, expiresAt } = read()
    expect([cert, key]).toEqual([readFileSync(one.certFile, 'utf8'), readFileSync(one.keyFile, 'utf8')])
    expect(Math.abs(expiresAt - Date.now() - 10 * day)).toBeLessThan(60_000)
  })

  test('is used until the moment at which it expires, and not at that moment', () => {
    const { expiresAt } = read()
    expect(read({}, expiresAt - 1)).toMatchObject({ expiresAt })
    expect(() => read({}, expiresAt)).toThrow('it expired at')
  })

  test('may have the certificates of its issuers behind the first', () => {
    const chain = write('chain.pem', readFileSync(one.certFile, 'utf8') + readFileSync(two.certFile, 'utf8'))
    expect(read({ certFile: chain }).subject).toBe('CN=one')
  })

  const refused: [what: string, make: () => [Partial<CertificateFiles>, now?: number], message: string][] = [
    ['of two pairs', () => [{ keyFile: two.keyFile }], 'it is not the key of the certificate'],
    ['that has expired', () => [{}, Date.now() + 11 * day], 'it expired at'],
    ['of the future', () => [{}, Date.now() - day], 'it is not valid before'],
    ['without a certificate file', () => [{ certFile: pathOf('none') }], 'LATCHKEY_TLS_CERT_FILE'],
    ['without a key file', () => [{ keyFile: pathOf('none') }], 'LATCHKEY_TLS_KEY_FILE'],
    [
      'whose certificate is no PEM',
      () => [{ certFile: write('text', 'hello') }],
      'must begin with a certificate in PEM',
    ],
    ['whose key is no PEM', () => [{ keyFile: write('text', 'hello') }], 'must have a private key in PEM'],
    ['whose certificate is out of reach', () => [{ certFile: linkToItself('unreachable') }], 'LATCHKEY_TLS_CERT_FILE'],
    ['whose certificate is a folder', () => [{ certFile: folder.path }], 'not a regular file'],
  ]
  for (const [what, make, message] of refused)
    test(`${what} is refused`, () => {
      const [files, now] = make()
      expect(() => read(files, now)).toThrow(message)
    })

  test('whose key has a passphrase is refused', () => {
    const keyFile = pathOf('encrypted.key')
    Bun.spawnSync(['openssl', 'pkey', '-in', one.keyFile, '-aes256', '-passout', 'pass:secret', '-out', keyFile])
    expect(() => read({ keyFile })).toThrow('must not have a passphrase')
  })

  test('is never read from the database, whose lock that would drop', () => {
    linkSync(write('latchkey.db', 'database'), pathOf('linked.pem'))
    expect(() => read({ certFile: pathOf('linked.pem') })).toThrow('it is the database')
  })

  test('is seen to change when a file gets out of reach', () => {
    const files = { certFile: write('reachable', 'hello'), keyFile: one.keyFile }
    const before = stampOf(files)
    rmSync(files.certFile)
    linkToItself('reachable')
    const after = stampOf(files)
    expect(after).not.toBe(before)
    expect(stampOf(files)).toBe(after)
  })

  test('is seen to change when a link leads elsewhere, as a mounted Kubernetes secret does', () => {
    for (const [name, { certFile }] of Object.entries({ first: one, second: two })) {
      mkdirSync(pathOf(name))
      writeFileSync(join(pathOf(name), 'tls.crt'), readFileSync(certFile))
    }
    const files = { certFile: join(pathOf('data'), 'tls.crt'), keyFile: one.keyFile }
    symlinkSync(pathOf('first'), pathOf('data'))
    const before = stampOf(files)
    expect(stampOf(files)).toBe(before)
    rmSync(pathOf('data'))
    symlinkSync(pathOf('second'), pathOf('data'))
    expect(stampOf(files)).not.toBe(before)
  })
})
