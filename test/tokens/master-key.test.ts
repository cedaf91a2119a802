// The master key: where it comes from, that its file is private and never replaced, and that what it seals opens only in its own place.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { Fault } from '../../src/fault.ts'
import { decrypt, encrypt, type MasterKeySource, readMasterKey } from '../../src/tokens/master-key.ts'
import { listOldKeyFiles, readNextKeyFile, writeNextKeyFile } from '../../src/tokens/master-key-file.ts'
import { temporaryFolder } from '../support/latchkey.ts'

let folder: ReturnType<typeof temporaryFolder>
let path: string
let source: MasterKeySource
beforeEach(() => {
  folder = temporaryFolder()
  path = join(folder.path, 'data', 'master.key')
  source = { kind: 'file', path, isDefault: true }
})
afterEach(() => folder.remove())

const plain = Buffer.from('a private key')
const ofHex = (hex: string) => readMasterKey({ kind: 'value', hex }, { create: false })

describe('the file', () => {
  test('is made with 64 hex digits, for its owner alone', async () => {
    const umask = process.umask(0)
    try {
      await readMasterKey(source, { create: true })
    } finally {
      process.umask(umask)
    }
    expect(readFileSync(path, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(join(folder.path, 'data')).mode & 0o777).toBe(0o700)
    expect(readdirSync(join(folder.path, 'data'))).toEqual(['master.key'])
  })

  test('is another one each time', async () => {
    const other = join(folder.path, 'other.key')
    await readMasterKey(source, { create: true })
    await readMasterKey({ kind: 'file', path: other, isDefault: false }, { create: true })
    expect(readFileSync(other, 'utf8')).not.toBe(readFileSync(path, 'utf8'))
  })

  test('that exists is never replaced, not even a damaged one', async () => {
    mkdirSync(join(folder.path, 'data'))
    for (const text of [`${'ab'.repeat(32)}\n`, 'damaged']) {
      writeFileSync(path, text)
      await readMasterKey(source, { create: true }).catch(() => {})
      expect(readFileSync(path, 'utf8')).toBe(text)
    }
    expect(readdirSync(join(folder.path, 'data'))).toEqual(['master.key'])
  })

  test('that two make at the same time is one key for both', async () => {
    const keys = await Promise.all([1, 2, 3].map(() => readMasterKey(source, { create: true })))
    const [first] = keys
    const sealed = await encrypt(first as CryptoKey, 'row', plain)
    for (const key of keys) expect(Buffer.from(await decrypt(key, 'row', sealed))).toEqual(plain)
  })

  test('is not made unless asked for', async () => {
    await expect(readMasterKey(source, { create: false })).rejects.toMatchObject({ code: 'configuration' })
    expect(readdirSync(folder.path)).toEqual([])
  })

  const wrong: [name: string, text: string][] = [
    ['is empty', ''],
    ['holds 63 digits', 'a'.repeat(63)],
    ['holds 65 digits', 'a'.repeat(65)],
    ['holds something else', `${'a'.repeat(63)}g`],
    ['holds two keys', `${'a'.repeat(64)}\n${'b'.repeat(64)}`],
  ]
  for (const [name, text] of wrong) {
    test(`that ${name} is refused without being quoted`, async () => {
      mkdirSync(join(folder.path, 'data'))
      writeFileSync(path, text)
      const fault = await readMasterKey(source, { create: false }).catch((error: unknown) => error)
      expect(fault).toBeInstanceOf(Fault)
      expect(fault).toMatchObject({ code: 'configuration' })
      expect((fault as Fault).message).toContain(path)
      expect((fault as Fault).message).not.toContain('a'.repeat(63))
    })
  }

  test('may have white space around the digits', async () => {
    mkdirSync(join(folder.path, 'data'))
    writeFileSync(path, `  ${'AB'.repeat(32)}\r\n`)
    const sealed = await encrypt(await readMasterKey(source, { create: false }), 'row', plain)
    expect(Buffer.from(await decrypt(await ofHex('ab'.repeat(32)), 'row', sealed))).toEqual(plain)
  })

  test('that another replacement would put in place is kept as an old one, since it may have encrypted something', async () => {
    await readMasterKey(source, { create: true })
    const [one, other] = ['01', '02'].map((digits) => digits.repeat(32))
    for (const hex of [one, other, other]) writeNextKeyFile(path, hex ?? '', undefined)
    expect(readNextKeyFile(path)).toBe(other)
    expect(listOldKeyFiles(path).map((old) => readFileSync(old, 'utf8').trim())).toEqual([one ?? ''])
  })

  test('that cannot be made is reported with its path', async () => {
    writeFileSync(join(folder.path, 'data'), 'a file where the folder should be')
    await expect(readMasterKey(source, { create: true })).rejects.toThrow(path)
  })
})

describe('what is sealed', () => {
  test('opens again with the same key in the same place', async () => {
    const key = await ofHex('01'.repeat(32))
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.string(), async (bytes, context) => {
        const sealed = await encrypt(key, context, Uint8Array.from(bytes))
        expect(new Uint8Array(await decrypt(key, context, sealed))).toEqual(Uint8Array.from(bytes))
      }),
    )
  })

  test('does not open under another key, in another row, or with any character changed', async () => {
    const key = await ofHex('01'.repeat(32))
    const sealed = await encrypt(key, 'row-1', plain)
    await expect(decrypt(await ofHex('02'.repeat(32)), 'row-1', sealed)).rejects.toThrow()
    await expect(decrypt(key, 'row-2', sealed)).rejects.toThrow()
    await expect(decrypt(key, '', sealed)).rejects.toThrow()
    for (let at = 0; at < sealed.length - 1; at++) {
      const changed = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1)
      await expect(decrypt(key, 'row-1', changed)).rejects.toThrow()
    }
    await expect(decrypt(key, 'row-1', '')).rejects.toThrow()
  })

  test('never repeats: the same text is sealed differently each time', async () => {
    const key = await ofHex('01'.repeat(32))
    const sealed = await Promise.all(Array.from({ length: 50 }, () => encrypt(key, 'row', plain)))
    expect(new Set(sealed.map((text) => text.split('.')[0])).size).toBe(50)
  })
})
