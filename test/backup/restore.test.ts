// A restore proves a backup line by line, and changes nothing unless everything is proved. Hostile files are refused with a reason.
import { expect } from 'bun:test'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { latestSchema } from '../../db/schema/migrate.ts'
import { type Manifest, manifestLine, readManifest } from '../../src/backup/backup-file.ts'
import { planReplacement } from '../../src/backup/restore.ts'
import type { BackupCheck } from '../../src/backup/verify.ts'
import { rowsInFile } from '../support/database-file.ts'
import { onFile } from '../support/file-only.ts'
import { type Installation, install, trust } from '../support/installation.ts'
import { postExchange, runCommand, temporaryFolder } from '../support/latchkey.ts'

const { afterAll, afterEach, beforeAll, beforeEach, describe, test } = onFile('backup by copy')

type Outcome = { ok: boolean; database: string | null; previous: string | null; data: BackupCheck[] }

let installation: Installation
let made: string
let token: string
beforeAll(async () => {
  installation = await install()
  const served = await installation.serve(undefined, { LATCHKEY_ADMIN_ORIGIN: 'https://admin.example.com' })
  const trusted = await trust(served, await installation.startIssuer())
  const fields = { federation_policy_id: trusted.policyId, subject_token: trusted.subjectToken }
  const response = await postExchange(served.baseUrl, fields)
  token = ((await response.json()) as { access_token: string }).access_token
  const inferred = await fetch(`${served.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'one two' }] }),
  })
  await inferred.text()
  const [, link] = (await served.ask<{ url: string }>('sessions.link')).url.split('#link=')
  const signedIn = await fetch(`${served.baseUrl}/admin/session`, {
    method: 'POST',
    headers: {
      'sec-fetch-site': 'same-origin',
      origin: 'https://admin.example.com',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ link }),
  })
  expect(signedIn.status).toBe(200)
  made = join(installation.folder, 'made.backup')
  await served.ask('backup.create', { to: made })
  await served.serving.stop()
})
afterAll(() => installation.remove())

/** Another machine: an empty folder with the backup and the master key. */
let machine: ReturnType<typeof temporaryFolder>
let data: string
let file: string
let env: Record<string, string>
beforeEach(() => {
  machine = temporaryFolder()
  data = join(machine.path, 'data')
  file = join(machine.path, 'here.backup')
  mkdirSync(data)
  copyFileSync(join(installation.folder, 'master.key'), join(data, 'master.key'))
  copyFileSync(made, file)
  env = { ...installation.env, LATCHKEY_DATABASE_URL: `file:${join(data, 'latchkey.db')}` }
})
afterEach(() => machine.remove())

const run = (...args: string[]) => runCommand(args, { cwd: machine.path, env })
async function restore(...more: string[]) {
  const { code, stdout, stderr } = await run('restore', file, '--json', ...more)
  expect(stderr).toBe('')
  return { code, ...(JSON.parse(stdout) as Outcome) }
}
/** The check that fails, after which all others are skipped. */
async function failing(...more: string[]): Promise<string> {
  const { code, ok, database, data: checks } = await restore(...more)
  expect({ code, ok, database }).toEqual({ code: 1, ok: false, database: null })
  const at = checks.findIndex(({ result }) => result === 'failed')
  expect(new Set(checks.slice(at + 1).map(({ result }) => result)).isSubsetOf(new Set(['skipped']))).toBe(true)
  expect(readdirSync(data)).toEqual(['master.key'])
  return `${checks[at]?.check}: ${checks[at]?.detail}`
}

/** Changes the database of the backup, and makes its manifest fit again as far as sizes and digest go. */
async function forge(change: { sql?: string; manifest?: Partial<Manifest> }): Promise<void> {
  const manifest = await readManifest(file)
  truncateSync(file, manifest.database_bytes)
  if (change.sql !== undefined) {
    const script = "const [path, sql] = process.argv.slice(1); new (require('bun:sqlite').Database)(path).run(sql)"
    const { exitCode, stderr } = Bun.spawnSync([process.execPath, '-e', script, file, change.sql])
    if (exitCode !== 0) throw new Error(`The backup could not be forged: ${stderr}`)
  }
  const bytes = readFileSync(file)
  const fitting = { database_bytes: bytes.length, database_sha256: createHash('sha256').update(bytes).digest('hex') }
  writeFileSync(file, manifestLine({ ...manifest, ...fitting, ...change.manifest }), { flag: 'a' })
}

describe('restored in an empty folder,', () => {
  test('a backup passes every check, and issued tokens work with the server', async () => {
    const outcome = await restore()
    expect(outcome.data.map(({ check, result }) => `${check} ${result}`)).toEqual([
      'file ok',
      'digest ok',
      'integrity ok',
      'contents ok',
      'schema ok',
      'budgets ok',
      'signing_keys ok',
      'probe_token ok',
      'key_set ok',
    ])
    expect(outcome).toMatchObject({ code: 0, ok: true, database: join(data, 'latchkey.db'), previous: null })
    expect(readdirSync(data).toSorted()).toEqual(['latchkey.db', 'master.key'])
    expect(statSync(join(data, 'latchkey.db')).mode & 0o777).toBe(0o600)
    // A session of the admin page that ended after the backup must not live again.
    const count = 'select count(*) as count from sessions'
    expect([file, join(data, 'latchkey.db')].map((path) => rowsInFile(path, count)[0]?.count)).toEqual([1, 0])
    const served = await installation.serve(undefined, env)
    const listed = await fetch(`${served.baseUrl}/models`, { headers: { authorization: `Bearer ${token}` } })
    expect(listed.status).toBe(200)
    await served.serving.stop()
  })

  test('its text has a line for each check, and says what to run next', async () => {
    const { code, stdout } = await run('restore', file)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^ok {7}file {10}latchkey-[0-9a-f]{8}, made at /)
    expect(stdout).toContain('Next: latchkey serve')
  })
})

describe('with --verify', () => {
  test('nothing changes, and nothing is left beside the backup', async () => {
    expect(await restore('--verify')).toMatchObject({ code: 0, ok: true, database: null })
    expect(readdirSync(data)).toEqual(['master.key'])
    expect(readdirSync(machine.path).toSorted()).toEqual(['data', 'here.backup'])
  })

  test('it works while a server runs, which restore itself refuses', async () => {
    cpSync(installation.folder, data, { recursive: true })
    const served = await installation.serve(undefined, env)
    expect(await restore('--verify')).toMatchObject({ code: 0, ok: true })
    const refused = await run('restore', file)
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('Stop the server first') })
    expect(await served.serving.stop()).toBe(0)
  })
})

test('the old database is kept under another name, with every row of its log', async () => {
  await restore()
  const served = await installation.serve(undefined, env)
  await served.ask('keys.create', { name: 'later' })
  await served.serving.stop('SIGKILL')
  const { previous } = await restore()
  // Its log was moved into it.
  expect(readdirSync(data).filter((name) => name.endsWith('-wal'))).toEqual([])
  const namesIn = (path: string) => rowsInFile(path, 'select name from api_keys').map(({ name }) => name)
  expect(namesIn(String(previous))).toContain('later')
  expect(namesIn(join(data, 'latchkey.db'))).not.toContain('later')
})

test('behind a link, the file that it leads to is replaced, and the link stays', async () => {
  const [link, real] = [join(data, 'latchkey.db'), join(machine.path, 'real.db')]
  copyFileSync(join(installation.folder, 'latchkey.db'), real)
  symlinkSync(real, link)
  const { code, previous } = await restore()
  expect({ code, previous }).toEqual({ code: 0, previous: expect.stringContaining(`${real}.before-restore-`) })
  expect(lstatSync(link).isSymbolicLink()).toBe(true)
  expect((await run('keys', 'list')).code).toBe(0)
})

test('the log of a database that was removed is kept, and does not become that of the new one', async () => {
  await restore()
  const served = await installation.serve(undefined, env)
  await served.ask('keys.create', { name: 'later' })
  await served.serving.stop('SIGKILL')
  rmSync(join(data, 'latchkey.db'))
  expect((await restore()).code).toBe(0)
  expect((await run('keys', 'list')).stdout).not.toContain('later')
  expect(readdirSync(data).some((name) => /before-restore-\w+-wal$/.test(name))).toBe(true)
})

test('a database that another process creates meanwhile is not replaced', () => {
  const [path, scratch] = [join(data, 'latchkey.db'), join(data, 'scratch')]
  writeFileSync(scratch, 'restored')
  const { steps } = planReplacement(path, scratch, { state: 'absent' }, 0)
  writeFileSync(path, 'created')
  expect(() => {
    for (const step of steps) step()
  }).toThrow('Another process has created the database')
  expect(readFileSync(path, 'utf8')).toBe('created')
})

test('a damaged database is replaced and kept, together with its log', async () => {
  const path = join(data, 'latchkey.db')
  writeFileSync(path, 'no database')
  writeFileSync(`${path}-wal`, 'no log')
  const { code, previous } = await restore()
  expect(code).toBe(0)
  expect(readFileSync(String(previous), 'utf8')).toBe('no database')
  expect(readFileSync(`${previous}-wal`, 'utf8')).toBe('no log')
  expect((await run('keys', 'list')).code).toBe(0)
})

test("another program's database is never replaced", async () => {
  const path = join(data, 'latchkey.db')
  const script = "new (require('bun:sqlite').Database)(process.argv[1], { create: true }).run('create table t (x)')"
  Bun.spawnSync([process.execPath, '-e', script, path])
  expect(await run('restore', file)).toMatchObject({ code: 3, stderr: expect.stringContaining("another program's") })
})

describe('refused is', () => {
  test('the wrong master key, by its fingerprint, unless the key is lost', async () => {
    writeFileSync(join(data, 'master.key'), 'ab'.repeat(32))
    const { master_key_fingerprint: fingerprint } = await readManifest(file)
    expect(await failing()).toMatch(new RegExp(`^signing_keys: .*does not decrypt.*${fingerprint}`))
    expect(await restore('--without-master-key')).toMatchObject({ code: 0, ok: true })
    expect(await run('master-key', 'replace', '--lost', '--yes')).toMatchObject({ code: 0 })
  })

  test('a missing master key', async () => {
    rmSync(join(data, 'master.key'))
    const { code, data: checks } = await restore()
    expect(code).toBe(1)
    expect(checks.find(({ result }) => result === 'failed')).toMatchObject({
      check: 'signing_keys',
      detail: expect.stringMatching(/cannot be read: .*ENOENT.*needs the key with the fingerprint/),
    })
  })

  test('a scratch folder that does not exist', async () => {
    const { code, stderr } = await run('restore', file, '--verify', '--scratch', join(machine.path, 'none'))
    expect(code).toBe(1)
    expect(stderr).toContain('it does not exist; create it')
  })

  test('a file that is cut off, anywhere', async () => {
    const { size } = statSync(file)
    for (const length of [size - 1, size - 600, size - 2_000, 8_192, 10, 0]) {
      truncateSync(file, length)
      expect(await failing('--verify')).toMatch(/^file: .* is not a complete backup/)
    }
  })

  test('a changed byte', async () => {
    const bytes = readFileSync(file)
    bytes[9_000] = (bytes[9_000] ?? 0) ^ 1
    writeFileSync(file, bytes)
    expect(await failing()).toMatch(/^digest: .*the file was changed$/)
  })

  test('a byte between the database and its manifest, which both stay as they were', async () => {
    const manifest = await readManifest(file)
    truncateSync(file, manifest.database_bytes)
    writeFileSync(file, `x${manifestLine(manifest)}`, { flag: 'a' })
    expect(await failing()).toMatch(/^file: .* is not a complete backup: .*bytes where its manifest says/)
  })

  const forged: [name: string, change: Parameters<typeof forge>[0], expected: RegExp][] = [
    [
      'a row more than the manifest has',
      {
        sql: "insert into prices (model, prompt_nanodollars, completion_nanodollars, updated_at) values ('m', 1, 1, 1)",
      },
      /^contents: .*prices/,
    ],
    [
      'a trigger of somebody else',
      { sql: 'create trigger t after insert on usage begin select 1; end' },
      /^schema: .*trigger t/,
    ],
    ['totals that do not match', { sql: 'update day_totals set requests = requests + 1' }, /^budgets: /],
    ['a reference to a row that is missing', { sql: 'delete from issuers' }, /^integrity: .*refers to a row/],
    ['a signing key that the manifest lacks', { manifest: { signing_keys: [] } }, /^key_set: /],
    ['a format of the future', { manifest: { latchkey_backup: 2 } }, /^file: .*newer program/],
    [
      'a manifest of the wrong form',
      { manifest: { tables: { usage: { rows: -1, highest: 0 } } } },
      /^file: .*manifest is not valid/,
    ],
    ['a size that is too large', { manifest: { database_bytes: 9e15 } }, /^file: .*bytes where its manifest says/],
    [
      'a schema of the future',
      { sql: `insert into schema_migrations values (${latestSchema + 1}, 'future', 1)` },
      /^contents: .*newer than this program/,
    ],
  ]
  for (const [name, change, expected] of forged)
    test(name, async () => {
      await forge(change)
      expect(await failing()).toMatch(expected)
    })

  test('a file of another kind: a tar with paths out of its folder, a plain database, a folder, none', async () => {
    const header = Buffer.alloc(1_024)
    header.write('../../../../etc/cron.d/evil')
    header.write('ustar', 257)
    writeFileSync(file, header)
    expect(await failing()).toMatch(/^file: .*does not begin as a SQLite database/)
    copyFileSync(installation.databasePath, file)
    expect(await failing()).toMatch(/^file: .*does not end in a manifest/)
    rmSync(file)
    expect(await failing()).toMatch(/^file: .*does not exist/)
    mkdirSync(file)
    expect(await failing()).toMatch(/^file: .*not a regular file/)
  })

  test('a pipe, without waiting for a writer', async () => {
    rmSync(file)
    expect(Bun.spawnSync(['mkfifo', file]).exitCode).toBe(0)
    expect(await failing()).toMatch(/it is not a regular file/)
  })

  test('a sparse file of a terabyte, without reading it', async () => {
    truncateSync(file, 1024 ** 4)
    expect(await failing()).toMatch(/^file: .*does not end in a manifest/)
  })
})
