// Backups of a running server: what they contain, that they stand in nobody's way, and when they are refused.
import { expect } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { askServer } from '../../src/admin/transport/client.ts'
import { readManifest } from '../../src/backup/backup-file.ts'
import { checkSpace } from '../../src/backup/space.ts'
import { backupLogBytesMax } from '../../src/limits.ts'
import { masterKeyFingerprint } from '../../src/tokens/master-key-file.ts'
import { rowsInFile } from '../support/database-file.ts'
import { onFile } from '../support/file-only.ts'
import { install } from '../support/installation.ts'
import { fromSource, runCommand, startTestServer, type TestServer } from '../support/latchkey.ts'

const { afterEach, beforeEach, describe, test } = onFile('backup by copy')

let server: TestServer
beforeEach(async () => {
  server = await startTestServer()
})
afterEach(() => server.stop())

const file = () => join(server.folder, 'one.backup')
const back = (to = file()) => server.admin<{ file: string; bytes: number; manifest: object }>('backup.create', { to })
const partials = () => readdirSync(server.folder).filter((name) => name.includes('.partial-'))

describe('a backup', () => {
  test('is a SQLite database with every acknowledged row, although the log has not been moved into the file', async () => {
    for (const name of ['one', 'two', 'three']) await server.admin('keys.create', { name })
    const release = await server.server.context.database.holdCheckpoints()
    const before = statSync(server.config.databasePath).size
    await back()
    expect(statSync(server.config.databasePath).size).toBe(before)
    await release()
    const names = rowsInFile(file(), 'select name from api_keys order by created_at, name').map(({ name }) => name)
    expect(names.toSorted()).toEqual(['first management key', 'one', 'three', 'two'])
    expect(rowsInFile(file(), 'pragma integrity_check')).toEqual([{ integrity_check: 'ok' }])
  })

  test('ends in its manifest, is for its user alone and does not contain the master key', async () => {
    const { bytes, manifest } = await back()
    expect(statSync(file())).toMatchObject({ size: bytes })
    expect(statSync(file()).mode & 0o777).toBe(0o600)
    expect(manifest).toEqual(await readManifest(file()))
    const key = readFileSync(join(server.folder, 'master.key'), 'utf8').trim()
    expect(manifest).toMatchObject({
      latchkey_backup: 1,
      tables: { api_keys: { rows: 1, highest: null }, admin_changes: { rows: 2, highest: 2 } },
      master_key_fingerprint: masterKeyFingerprint(key),
    })
    expect(readFileSync(file()).includes(key)).toBe(false)
    expect(partials()).toEqual([])
  })

  test('in a folder is named after installation and time', async () => {
    const { file: made } = await back(`${server.folder}/`)
    expect(made).toMatch(/\/latchkey-[0-9a-f]{8}-\d{8}T\d{6}Z\.backup$/)
  })

  test('is logged with the user who asked for it, and lets checkpoints go on', async () => {
    await server.server.runByName('backup.create', { to: file() }, { kind: 'local', osUser: 'ops', sudoUser: null })
    const logged = server.logLines.find((line) => line.includes('"event":"backup_created"')) ?? '{}'
    expect(JSON.parse(logged)).toMatchObject({ os_user: 'ops', sudo_user: null })
    const { client } = server.server.context.database
    expect((await client.execute('pragma wal_autocheckpoint')).rows[0]?.[0]).toBe(4_096)
  })

  test('removes what a killed one has left under its name, and nothing else', async () => {
    const left = `${file()}.partial-0123abcd`
    const other = join(server.folder, 'other.backup.partial-0123abcd')
    for (const path of [left, `${left}-wal`, other]) writeFileSync(path, '')
    await back()
    expect(partials()).toEqual(['other.backup.partial-0123abcd'])
  })
})

describe('refused is a backup', () => {
  const refusal = (to?: string) => back(to).then(Promise.reject, (error: unknown) => error)

  test('at the same time as another one', async () => {
    const first = back()
    expect(await refusal(`${server.folder}/`)).toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/Another backup is running/),
    })
    await first
    expect(await back(`${server.folder}/`)).toHaveProperty('file')
  })

  test('over a file, the database included, which stays as it is', async () => {
    writeFileSync(file(), 'kept')
    expect(await refusal()).toMatchObject({ code: 'conflict', message: expect.stringMatching(/exists already/) })
    expect(readFileSync(file(), 'utf8')).toBe('kept')
    expect(await refusal(server.config.databasePath)).toMatchObject({ code: 'conflict' })
  })

  test('in a folder that does not exist, or under a relative path', async () => {
    expect(await refusal(join(server.folder, 'none', 'x'))).toMatchObject({
      message: expect.stringMatching(/does not exist; create it/),
    })
    expect(await refusal('x')).toMatchObject({ code: 'invalid' })
  })

  test('in a folder that is out of reach, with the folder and not as an internal error', async () => {
    const loop = join(server.folder, 'loop')
    symlinkSync(loop, loop)
    expect(await refusal(join(loop, 'x'))).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(JSON.stringify(loop)),
    })
  })

  test('under a name that SQLite uses beside the database', async () => {
    expect(await refusal(`${server.config.databasePath}-journal`)).toMatchObject({ code: 'conflict' })
  })

  test('under a name that is too long for a file system', async () => {
    const long = expect.stringMatching(/too long/)
    expect(await refusal(join(server.folder, 'a'.repeat(250)))).toMatchObject({ code: 'invalid', message: long })
    expect(await refusal(`/${'a/'.repeat(2_500)}b`)).toMatchObject({ code: 'invalid', message: long })
  })

  test('for lack of space, before anything is written', async () => {
    const error = await checkSpace(server.folder, 10_000_000, async () => 20_000_000).catch((fault: unknown) => fault)
    expect(error).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/has 20 MB free and needs 27 MB/),
    })
    await checkSpace(server.folder, 10_000_000, async () => 30_000_000)
  })

  test('whose log grows beyond its bound: it stops, and leaves nothing behind', async () => {
    const { config } = server
    const { database } = server.server.context
    const hold = database.holdCheckpoints
    // A sparse file of that size stands for the log of a busy server.
    database.holdCheckpoints = async () => {
      const release = await hold()
      Bun.spawnSync(['truncate', '-s', String(backupLogBytesMax + 1), `${config.databasePath}-wal`])
      return release
    }
    expect(await refusal()).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/grew beyond 268 MB/) })
    expect(partials()).toEqual([])
    expect(existsSync(file())).toBe(false)
  })
})

test('the backup of a database behind a link has the rows of its log', async () => {
  const installation = await install()
  const [link, to] = [join(installation.folder, 'link.db'), join(installation.folder, 'link.backup')]
  symlinkSync('latchkey.db', link)
  const served = await installation.serve(undefined, { LATCHKEY_DATABASE_URL: `file:${link}` })
  const ask = (name: 'keys.create' | 'backup.create', input: object) => askServer(`${link}.sock`, name, input)
  await ask('keys.create', { name: 'one' })
  await ask('backup.create', { to })
  expect(rowsInFile(to, 'select name from api_keys').map(({ name }) => name)).toContain('one')
  expect(await served.serving.stop()).toBe(0)
  await installation.remove()
})

test('a file that appears under the name of a running backup is not replaced', async () => {
  const { database } = server.server.context
  const hold = database.holdCheckpoints
  database.holdCheckpoints = () => {
    writeFileSync(file(), 'of someone else')
    return hold()
  }
  await expect(back()).rejects.toMatchObject({ code: 'unavailable' })
  expect(readFileSync(file(), 'utf8')).toBe('of someone else')
  expect(partials()).toEqual([])
})

test('the backup of a server that stops is aborted, and the server ends in order', async () => {
  const installation = await install()
  const served = await installation.serve()
  const folder = join(installation.folder, 'backups')
  mkdirSync(folder)
  const asked = served.ask('backup.create', { to: `${folder}/` }).catch((error: unknown) => error)
  await served.ask('health.show')
  expect(await served.serving.stop()).toBe(0)
  await asked
  expect(readdirSync(folder).filter((name) => name.includes('partial'))).toEqual([])
  await installation.remove()
})

test('on a full disk the backup fails with a sentence and leaves nothing behind, and the command without a server too', async () => {
  const installation = await install()
  const blocks = Math.ceil(statSync(installation.databasePath).size / 512)
  const limited = ['sh', '-c', `trap "" XFSZ; ulimit -S -f ${Math.max(1, blocks - 100)}; exec "$0" "$@"`, ...fromSource]
  const to = join(installation.folder, 'full.backup')
  const { code, stdout, stderr } = await runCommand(['backup', '--to', to], {
    cwd: installation.folder,
    env: installation.env,
    program: limited,
  })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^latchkey: The backup "[^"]*" could not be written: [^\n]+\n$/)
  expect(readdirSync(installation.folder).filter((name) => name.startsWith('full'))).toEqual([])
  await installation.remove()
})
