// Free pages go back to the file system in steps, and a database without that ability keeps them for new rows.

import { Database as OtherSqlite } from 'bun:sqlite'
import { afterEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Database, openDatabase } from '../../../db/file/open.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import { temporaryFolder } from '../../support/latchkey.ts'

let folder: ReturnType<typeof temporaryFolder>
let database: Database
let writer: Writer
afterEach(async () => {
  await writer.close()
  await database.close()
  folder.remove()
})

/** A database with a few hundred free pages. */
async function open(prepare: (path: string) => void = () => {}): Promise<void> {
  folder = temporaryFolder()
  const path = join(folder.path, 'latchkey.db')
  prepare(path)
  const opened = await openDatabase({ path, create: true, synchronous: 'normal' })
  if ('refused' in opened) throw new Error(opened.message)
  database = opened
  writer = createWriter(database, (error) => {
    throw error
  })
  await execute('create table filler (text text)')
  await execute(
    `insert into filler select printf('%01000d', value) from json_each('${JSON.stringify(new Array(2_000).fill(0))}')`,
  )
  await execute('drop table filler')
}

const execute = (sql: string) => writer.write([{ toSQL: () => ({ sql, params: [] }) }])
const read = async (pragma: string) => Number((await database.client.execute(`pragma ${pragma}`)).rows[0]?.[0])

test('free pages are given back in steps, and commits go on', async () => {
  await open()
  const [pages, free] = [await read('page_count'), await read('freelist_count')]
  expect(free).toBeGreaterThan(400)
  const left = await database.giveBackPages(100)
  expect(free - left).toBeGreaterThanOrEqual(100)
  expect(pages - (await read('page_count'))).toBe(free - left)
  await execute('create table after (id integer)')
  for (let rest = left; rest > 0; ) rest = await database.giveBackPages(100)
  expect(await read('freelist_count')).toBe(0)
  await execute('insert into after values (1)')
  expect((await database.client.execute('pragma integrity_check')).rows[0]?.[0]).toBe('ok')
  expect((await database.client.execute('select id from after')).rows).toHaveLength(1)
})

test('a database that an earlier version created keeps its free pages', async () => {
  await open((path) => {
    const other = new OtherSqlite(path)
    // The first table decides for good.
    other.run(
      'create table schema_migrations (version integer primary key, name text not null, applied_at integer not null) strict',
    )
    other.close()
  })
  const free = await read('freelist_count')
  expect(await database.giveBackPages(100)).toBe(0)
  expect(await read('freelist_count')).toBe(free)
})
