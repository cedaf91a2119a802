// The reason for the discipline in db/README.md: once a statement has failed with SQLITE_BUSY, libSQL acknowledges writes and loses them.
// This test FAILS when libSQL is mended. Then see what of the exclusive lock and the one writing function can be simplified.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import Libsql from 'libsql'
import { temporaryFolder } from '../../support/latchkey.ts'

test('libSQL still acknowledges and loses a write on a connection that has seen SQLITE_BUSY', () => {
  const folder = temporaryFolder()
  const holder = new Libsql(join(folder.path, 'canary.db'))
  holder.exec('pragma journal_mode = wal')
  holder.exec('create table kept (value integer)')
  const writer = new Libsql(join(folder.path, 'canary.db'))
  const begin = writer.prepare('begin immediate')

  holder.exec('begin immediate')
  expect(() => begin.run()).toThrow('database is locked')
  holder.exec('commit')
  const answer = writer.prepare('insert into kept values (1)').run()

  expect(answer.changes).toBe(1)
  expect(holder.prepare('select count(*) as count from kept').get()).toMatchObject({ count: 0 })
  // Named here so that it is not collected before: that would finalize it and heal the connection.
  expect(begin).toBeDefined()
  folder.remove()
})
