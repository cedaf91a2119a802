// How a node connects to a database server: TLS with a private certificate, a token, and migrations that several nodes begin at once.
import { afterAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectToServer } from '../../db/remote/kinds.ts'
import { inspectServerDatabase, openServerDatabase } from '../../db/remote/server-database.ts'
import { isUnknownOutcome, isUnreachable } from '../../db/remote/server-errors.ts'
import { createMigrations, latestSchema, migrations } from '../../db/schema/migrate.ts'
import { findSignInLink } from '../../db/tables/sign-in-links.ts'
import { describeError } from '../../src/fault.ts'
import { explainUnreachable } from '../../src/nodes/database-unreachable.ts'
import { rowsInFile } from '../support/database-file.ts'
import { startHranaServer } from '../support/hrana-server.ts'
import { startTestServer, temporaryFolder } from '../support/latchkey.ts'
import { masterKey, urlOf } from '../support/nodes.ts'
import { rejectionOf } from '../support/rejection.ts'
import { hasOpenssl, makeCertificate } from '../support/tls.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

describe.skipIf(!hasOpenssl)('a database server with its own certificate and a token (needs openssl)', () => {
  const token = 'database-token'
  const start = async (settings: Record<string, string>) => {
    const { certFile, keyFile } = makeCertificate(folder.path, 'database')
    const tls = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
    const database = await startHranaServer({ path: join(folder.path, 'secure.db'), token, tls })
    const tokenFile = join(folder.path, 'token')
    writeFileSync(tokenFile, `${token}\n`)
    const all = {
      LATCHKEY_DATABASE_URL: database.url,
      LATCHKEY_MASTER_KEY: masterKey,
      LATCHKEY_DATABASE_CA_FILE: certFile,
      LATCHKEY_DATABASE_TOKEN_FILE: tokenFile,
    }
    try {
      const node = await startTestServer({ settings: { ...all, ...settings } })
      const { status } = await fetch(`${urlOf(node)}/oauth/jwks`)
      await node.stop()
      return status
    } finally {
      await database.close()
    }
  }

  test('serves a node that has both', async () => {
    expect(await start({})).toBe(200)
  })

  test('is refused without the certificate', async () => {
    const otherFile = makeCertificate(folder.path, 'other').certFile
    const { message } = await rejectionOf(start({ LATCHKEY_DATABASE_CA_FILE: otherFile }))
    expect(message).toMatch(/cannot be opened: .*certificate/)
  })

  test('refuses a node with another token', async () => {
    const otherFile = join(folder.path, 'other-token')
    writeFileSync(otherFile, 'other')
    expect((await rejectionOf(start({ LATCHKEY_DATABASE_TOKEN_FILE: otherFile }))).message).toContain('401')
  })
})

test('a token that may only read fails at once, and what it could not write is not in doubt', async () => {
  const database = await startHranaServer({ path: join(folder.path, 'read-only.db') })
  let mayWrite = false
  let clock = 0
  const open = (create: boolean) =>
    openServerDatabase({
      url: database.url,
      token: undefined,
      create,
      // A commit is repeated for two seconds of this clock.
      monotonic: () => (clock += 500),
      send: async (request) => {
        const isWrite = request.url.includes('/db/request') || (await request.clone().text()).includes('"batch"')
        return mayWrite || !isWrite
          ? fetch(request)
          : new Response('{"error":"Authorization forbidden"}', { status: 403 })
      },
    })
  const refused = await open(true)
  expect('refused' in refused && refused.message).toContain('may not read and write the database (status 403)')
  expect('refused' in refused && describeError(refused.cause)).toContain('Authorization forbidden')
  mayWrite = true
  const opened = await open(true)
  if ('refused' in opened) throw new Error(opened.message)
  mayWrite = false
  const failure = await rejectionOf(() => opened.commit([{ sql: 'delete from nodes', args: [] }]))
  expect([isUnreachable(failure), isUnknownOutcome(failure)]).toEqual([true, false])
  expect(explainUnreachable(failure)).toMatchObject({ code: 'unavailable', message: failure.message })
  await opened.close()
  await database.close()
})

test('a commit whose response is not JSON counts once, and a read without one is unavailable', async () => {
  const database = await startHranaServer({ path: join(folder.path, 'garbled.db') })
  let garbled: ((text: string) => string) | undefined
  const opened = await openServerDatabase({
    url: database.url,
    token: undefined,
    create: true,
    send: async (request) => {
      const response = await fetch(request)
      const garble = garbled
      garbled = undefined
      return garble === undefined ? response : new Response(garble(await response.text()))
    },
  })
  if ('refused' in opened) throw new Error(opened.message)
  await opened.client.batch(['create table notes (text text)'], 'write')
  const add = { sql: "insert into notes values ('once')", args: [] }
  for (const garble of [(text: string) => text.slice(0, 60), () => '', () => '<html>Sign in</html>']) {
    garbled = garble
    await opened.commit([add])
    garbled = garble
    expect((await opened.client.execute('select count(*) as count from batches')).rows).toHaveLength(1)
  }
  expect(rowsInFile(database.file, 'select text from notes')).toHaveLength(3)
  database.trouble.isPartitioned = true
  const failure = explainUnreachable(await rejectionOf(findSignInLink(opened.orm, 'a code')))
  expect(failure).toMatchObject({ code: 'unavailable', reason: 'database_unreachable' })
  await opened.close()
  await database.close()
})

test('a node with another master key does not start', async () => {
  const database = await startHranaServer({ path: join(folder.path, 'keyed.db') })
  const start = (key: string, create: boolean) =>
    startTestServer({
      settings: { LATCHKEY_DATABASE_URL: database.url, LATCHKEY_MASTER_KEY: key },
      start: create ? {} : { create, prepare: async () => {} },
    })
  const node = await start(masterKey, true)
  const { code, message } = await rejectionOf(start('b2'.repeat(32), false))
  expect([code, message]).toEqual(['configuration', expect.stringContaining('does not fit this database')])
  await node.stop()
  await database.close()
})

test('a command leaves an older schema alone, and nodes that start at once run each migration once', async () => {
  const path = join(folder.path, 'older.db')
  const database = await startHranaServer({ path })
  const older = migrations.slice(0, -3)
  const { client } = await connectToServer({
    url: database.url,
    token: undefined,
    send: (request) => fetch(request),
  })
  for (const { version, name, statements } of older) {
    const record = {
      sql: 'insert into schema_migrations (version, name, applied_at) values (?, ?, 0)',
      args: [version, name],
    }
    await client.batch([createMigrations, record, ...statements], 'write')
  }
  client.close()
  const open = (migrates?: boolean) =>
    openServerDatabase({
      url: database.url,
      token: undefined,
      create: false,
      migrates,
      send: (request) => fetch(request),
    })
  expect(await open(false)).toMatchObject({ refused: 'older_schema' })
  expect(rowsInFile(database.file, 'select version from schema_migrations')).toHaveLength(older.length)
  const opened = await Promise.all([open(), open(), open()])
  expect(opened.filter((each) => 'refused' in each)).toEqual([])
  // Each names the schema that it met, which another can have raised already, also as far as it goes.
  expect(opened.map((each) => !('refused' in each) && each.migratedFrom)).toContain(older.at(-1)?.version)
  const rows = rowsInFile(database.file, 'select version from schema_migrations order by version')
  expect(rows.map(({ version }) => version)).toEqual(migrations.map(({ version }) => version))
  expect(rows.at(-1)?.version).toBe(latestSchema)
  for (const each of opened) if (!('refused' in each)) await each.close()
  await database.close()
})

test('a program leaves a database of a newer program alone', async () => {
  const database = await startHranaServer({ path: join(folder.path, 'newer.db') })
  const send = (request: Request) => fetch(request)
  const open = (create: boolean) => openServerDatabase({ url: database.url, token: undefined, create, send })
  const made = await open(true)
  if ('refused' in made) throw new Error(made.message)
  await made.commit([{ sql: 'insert into schema_migrations values (?, ?, 0)', args: [latestSchema + 1, 'later'] }])
  await made.close()
  const refusal = { refused: 'newer_schema', message: expect.stringContaining('use the newer program') }
  expect(await open(false)).toMatchObject(refusal)
  expect(await inspectServerDatabase({ url: database.url, token: undefined, send })).toMatchObject(refusal)
  await database.close()
})
