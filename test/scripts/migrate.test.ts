// `latchkey migrate` runs before the server, without its time limit: an upgrade of a large database takes minutes.
import { Database as Sqlite } from 'bun:sqlite'
import { afterAll, expect } from 'bun:test'
import { join } from 'node:path'
import { createMigrations, latestSchema, migrations } from '../../db/schema/migrate.ts'
import { onFile } from '../support/file-only.ts'
import { runCommand, startTestServer, temporaryFolder } from '../support/latchkey.ts'

const { test } = onFile('the file on disk')

const folder = temporaryFolder()
afterAll(() => folder.remove())

const migrate = (file: string) =>
  runCommand(['migrate', '--json'], { cwd: folder.path, env: { LATCHKEY_DATABASE_URL: `file:${file}` } })

/** A database as the program of that schema left it. */
function writeSchema(name: string, version: number): string {
  const path = join(folder.path, name)
  const sqlite = new Sqlite(path)
  sqlite.run(createMigrations)
  for (const migration of migrations.slice(0, version)) {
    for (const statement of migration.statements) sqlite.run(statement)
    sqlite.run('insert into schema_migrations values (?, ?, 0)', [migration.version, migration.name])
  }
  sqlite.close()
  return path
}

test('migrates an older database once', async () => {
  const path = writeSchema('old.db', 4)
  const [first, second] = [await migrate(path), await migrate(path)]
  expect([first.code, JSON.parse(first.stdout)]).toEqual([0, { to: latestSchema, server: false, from: 4 }])
  expect([second.code, JSON.parse(second.stdout)]).toEqual([0, { to: latestSchema, server: false, from: latestSchema }])
})

test('has nothing to do while a server runs', async () => {
  const server = await startTestServer()
  const { code, stdout } = await migrate(server.server.context.database.path)
  await server.stop()
  expect([code, JSON.parse(stdout)]).toEqual([0, { to: latestSchema, server: true, from: latestSchema }])
})

test('creates nothing, and leaves a newer database as it is', async () => {
  expect((await migrate(join(folder.path, 'none.db'))).code).toBe(3)
  expect(await Bun.file(join(folder.path, 'none.db')).exists()).toBe(false)
  const path = writeSchema('new.db', migrations.length)
  const sqlite = new Sqlite(path)
  sqlite.run(`insert into schema_migrations values (${latestSchema + 1}, 'later', 0)`)
  sqlite.close()
  expect(await migrate(path)).toMatchObject({ code: 3, stderr: expect.stringContaining('use the newer program') })
})
