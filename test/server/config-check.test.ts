// `latchkey config check`: every problem that a start would meet, each with what to do, found without starting or changing anything.
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectToServer } from '../../db/remote/kinds.ts'
import type { Check } from '../../src/server/config-check.ts'
import { onFile } from '../support/file-only.ts'
import { type Installation, install } from '../support/installation.ts'
import { listenLocally, runCommand } from '../support/latchkey.ts'
import { isServerKind } from '../support/server-kind.ts'
import { hasOpenssl, makeCertificate } from '../support/tls.ts'

let installation: Installation
beforeEach(async () => {
  installation = await install()
})
afterEach(() => installation.remove())

type Checked = { code: number; ok: boolean; resultOf: (check: string) => Check | undefined }

async function check(...args: string[]): Promise<Checked> {
  const { code, stdout } = await installation.run('config', 'check', '--json', ...args)
  const { ok, data } = JSON.parse(stdout) as { ok: boolean; data: Check[] }
  return { code, ok, resultOf: (name) => data.find((each) => each.check === name) }
}

/** Names, modes and contents of the data folder. An empty write-ahead log says nothing: the last connection to close removes it. */
const snapshot = () => {
  const paths = readdirSync(installation.folder).map((name) => join(installation.folder, name))
  const full = paths.filter((path) => statSync(path).isFile() && statSync(path).size > 0)
  return full.map((path) => [path, statSync(path).mode, readFileSync(path).toString('base64')])
}

describe('a good configuration', () => {
  test('passes without a server, and nothing in the data folder changes', async () => {
    const before = snapshot()
    const { code, stdout } = await installation.run('config', 'check')
    expect(code).toBe(0)
    const database = isServerKind ? 'schema version \\d+' : 'schema version \\d+, no server runs'
    expect(stdout).toMatch(new RegExp(`^ok +settings .*\nok +database +${database}\n`))
    expect(stdout).not.toContain('failed')
    expect(snapshot()).toEqual(before)
  })

  onFile('local socket').test('passes beside the running server, which keeps serving and keeps its port', async () => {
    const listen = `127.0.0.1:${await freePort()}`
    const { serving, baseUrl } = await installation.serve(undefined, { LATCHKEY_LISTEN: listen })
    const { code, resultOf } = await check('--listen', listen)
    expect(code).toBe(0)
    expect(resultOf('database')?.detail).toContain('the running server reads it')
    expect(resultOf('listen')).toMatchObject({ result: 'ok', detail: `${listen} is used by the running server` })
    expect(resultOf('master_key')).toMatchObject({ result: 'ok' })
    expect((await fetch(`${baseUrl}/oauth/jwks`)).status).toBe(200)
    expect(await serving.stop()).toBe(0)
  })
})

async function freePort(): Promise<number> {
  const { listener } = await listenLocally(async () => new Response())
  await listener.drain()
  return listener.port
}

describe('a failed check says what to do, and the exit code is 3:', () => {
  async function expectFailed(name: string, detail: string, ...args: string[]): Promise<void> {
    const { code, ok, resultOf } = await check(...args)
    expect(resultOf(name)).toEqual({ check: name, result: 'failed', detail: expect.stringContaining(detail) })
    expect({ code, ok }).toEqual({ code: 3, ok: false })
  }

  test('a wrong setting, which leaves every other check to be made', async () => {
    const { code, resultOf } = await check('--log-level', 'loud')
    expect(code).toBe(3)
    expect(resultOf('settings')?.detail).toContain('use error, warn, info or debug')
    expect(resultOf('database')?.result).toBe('skipped')
  })

  test('a missing database', () => expectFailed('database', 'run: latchkey init', '--database-url', 'file:none.db'))

  test('a file that is no database', () => {
    writeFileSync(join(installation.folder, 'other.db'), 'text'.repeat(1_000))
    return expectFailed('database', 'other.db', '--database-url', `file:${installation.folder}/other.db`)
  })

  test('the schema of a newer program', async () => {
    const text = "insert into schema_migrations values (9999, 'future', 0)"
    if (isServerKind) {
      const { client } = await connectToServer({
        url: installation.databasePath,
        token: undefined,
        send: (request) => fetch(request),
      })
      await client.batch([text], 'write')
      client.close()
    } else {
      const database = new Database(installation.databasePath)
      database.run(text)
      database.close()
    }
    return expectFailed('database', 'use the newer program')
  })

  test('a data folder whose path is too long for the socket', () =>
    expectFailed('socket_path', 'choose a shorter one', '--database-url', `file:/tmp/${'long'.repeat(40)}/a.db`))

  test('a master key that other users can read', () => {
    chmodSync(join(installation.folder, 'master.key'), 0o644)
    return expectFailed('master_key_file', 'run: chmod 600')
  })

  test('a missing master key, of which nothing else is said', async () => {
    rmSync(join(installation.folder, 'master.key'))
    const { code, resultOf } = await check()
    expect(code).toBe(3)
    expect(resultOf('master_key_file')?.result).toBe('failed')
    expect(resultOf('master_key')).toMatchObject({ result: 'skipped', detail: 'an earlier check must pass first' })
    expect(resultOf('access_log')?.detail).toBe('it is not set')
  })

  test('the master key of another database', async () => {
    writeFileSync(join(installation.folder, 'master.key'), 'ab'.repeat(32))
    await expectFailed('master_key', 'use the key that encrypted them')
  })

  onFile('local socket').test('another master key than that of the running server', async () => {
    const { serving } = await installation.serve()
    const other = join(installation.folder, 'other.key')
    writeFileSync(other, 'ab'.repeat(32), { mode: 0o600 })
    await expectFailed('master_key', 'use the same settings', '--master-key-file', other)
    expect(await serving.stop()).toBe(0)
  })

  test('a port that another program uses', async () => {
    const { listener } = await listenLocally(async () => new Response())
    await expectFailed('listen', 'is in use', '--listen', `127.0.0.1:${listener.port}`)
    await listener.drain()
  })

  test('an access log in a folder that does not exist', () =>
    expectFailed('access_log', 'create it', '--access-log', join(installation.folder, 'none', 'access.log')))

  test('retention without a folder, and a folder that does not exist', async () => {
    await expectFailed('settings', 'set without LATCHKEY_ARCHIVE_DIR', '--retain-usage-days', '30')
    const missing = join(installation.folder, 'none')
    await expectFailed('archive_dir', 'create it', '--retain-usage-days', '30', '--archive-dir', missing)
  })

  onFile('backup by copy').test('a folder for backups that does not exist', () =>
    expectFailed('backup_dir', 'create it', '--backup-dir', join(installation.folder, 'none')),
  )

  onFile('backup by copy').test('a folder for backups that is out of reach', () => {
    const loop = join(installation.folder, 'loop')
    symlinkSync(loop, loop)
    return expectFailed('backup_dir', loop, '--backup-dir', loop)
  })

  test.skipIf(!hasOpenssl)('a TLS key that does not fit (needs openssl)', () => {
    const [one, two] = ['one', 'two'].map((name) => makeCertificate(installation.folder, name))
    const files = ['--tls-cert-file', one?.certFile ?? '', '--tls-key-file', two?.keyFile ?? '']
    return expectFailed('tls', 'it is not the key of the certificate', ...files)
  })
})

test('config show prints the settings in force with secrets as "set", and refuses a wrong one', async () => {
  const { stdout } = await installation.run('config', 'show', '--json', '--log-level', 'warn')
  expect(JSON.parse(stdout)).toMatchObject({
    LATCHKEY_LOG_LEVEL: 'warn',
    LATCHKEY_UPSTREAM_API_KEY: 'set',
    LATCHKEY_MASTER_KEY: null,
    LATCHKEY_RATE_LIMIT: '0',
  })
  const env = { LATCHKEY_MASTER_KEY: 'ab'.repeat(32) }
  const shown = await runCommand(['config', 'show'], { cwd: installation.folder, env })
  expect(shown.stdout).toMatch(/LATCHKEY_MASTER_KEY +set\n/)
  expect((await installation.run('config', 'show', '--log-level', 'loud')).code).toBe(3)
})

test('a URL that names no database server reaches none', async () => {
  const options = { token: undefined, send: fetch } as unknown as Omit<Parameters<typeof connectToServer>[0], 'url'>
  await expect(connectToServer({ ...options, url: 'ftp://127.0.0.1' })).rejects.toThrow('names no database server')
})
