// What the operator reads when the disk or the file is the reason: what is wrong with which file, and the way back.
import { expect, test } from 'bun:test'
import { LibsqlError } from '@libsql/client'
import { storageFault } from '../../../src/admin/transport/storage-fault.ts'

const path = '/data/latchkey.db'
const faultOf = (code: string, text: string) =>
  storageFault(new Error('read', { cause: new LibsqlError(text, code) }), path)?.message

const rows: [code: string, text: string, contains: string[]][] = [
  [
    'SQLITE_CORRUPT',
    'database disk image is malformed',
    ['is damaged (database disk image is malformed)', 'latchkey help disaster'],
  ],
  ['SQLITE_NOTADB', 'file is not a database', ['is damaged (file is not a database)', 'restore a backup']],
  ['SQLITE_FULL', 'database or disk is full', ['is full', 'free some space']],
  ['SQLITE_IOERR', 'disk I/O error', ['could not be written: disk I/O error']],
]
for (const [code, text, contains] of rows)
  test(`${code} names the database, what is wrong and what to do`, () => {
    for (const part of [JSON.stringify(path), ...contains]) expect(faultOf(code, text)).toContain(part)
  })

test('any other error is not about the disk', () => {
  expect(faultOf('SQLITE_CONSTRAINT', 'UNIQUE constraint failed')).toBeUndefined()
})
