// `master-key replace`: what was encrypted under the old key opens under the new one; after `--lost`, what only the lost key opened is
// gone and named, and the server works again.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { compiledProgram } from '../support/compiled-program.ts'
import { rowsInFile } from '../support/database-file.ts'
import { type Installation, install, type Trust, trust } from '../support/installation.ts'
import { type Finished, listenLocally, postExchange, type Row, runCommand } from '../support/latchkey.ts'
import { isServerKind } from '../support/server-kind.ts'

type Replaced = {
  replaced: boolean
  finished: boolean
  lost: boolean
  dry_run: boolean
  database: string
  master_key_file: string | null
  previous_master_key_file: string | null
  signing_keys_reencrypted: number
  credentials_reencrypted: string[]
  signing_keys_ended: number
  credentials_dropped: string[]
  signing_key: string | null
}

/** A master key that is a value, in place of the file. */
const value = (hex: string) => ({ LATCHKEY_MASTER_KEY: hex, LATCHKEY_MASTER_KEY_FILE: '' })
const oldHex = '01'.repeat(32)
const newHex = '02'.repeat(32)

let installation: Installation
let file: string
let trusted: Trust
let accessToken: string
let upstream: Awaited<ReturnType<typeof listenLocally>>
/** What `prepare` makes, made once. */
let prepared: { installation: Installation; trusted: Trust; accessToken: string }
beforeAll(async () => {
  upstream = await listenLocally(createEchoUpstream('gpu-secret'))
  const installed = await installWithoutUpstream()
  prepared = { installation: installed, ...(await prepareIn(installed)) }
})
beforeEach(async () => {
  installation = await installWithoutUpstream()
  file = join(installation.folder, 'master.key')
})
afterEach(() => installation.remove())
afterAll(async () => {
  await prepared.installation.remove()
  await upstream.listener.drain()
})

/** The configured upstream would serve every model. */
async function installWithoutUpstream(): Promise<Installation> {
  const installed = await install()
  installed.env.LATCHKEY_UPSTREAM_URL = ''
  return installed
}

/** An upstream `gpu` with a credential, which serves the model `gpu/echo`, one without, and an access token. */
async function prepareIn(installed: Installation, env: Record<string, string> = {}) {
  const served = await installed.serve(undefined, env)
  const made = await trust(served, await installed.startIssuer())
  const models = { models: ['gpu/*'], priority: 0 }
  await served.ask('upstreams.add', {
    name: 'gpu',
    base_url: `${upstream.url}/v1`,
    credential: 'gpu-secret',
    ...models,
  })
  await served.ask('upstreams.add', { name: 'plain', base_url: 'http://127.0.0.1:1/v1', models: ['plain'] })
  const token = await exchangeAt(served.baseUrl, made)
  await served.serving.stop()
  return { trusted: made, accessToken: token }
}

/** The installation of this test becomes a copy of the prepared one. A database that is open cannot be replaced by a copy. */
async function prepare(): Promise<void> {
  ;({ trusted, accessToken } = isServerKind ? await prepareIn(installation) : prepared)
  if (!isServerKind) cpSync(prepared.installation.folder, installation.folder, { recursive: true })
}

async function exchangeAt(baseUrl: string, { policyId, subjectToken }: Trust): Promise<string> {
  const fields = { federation_policy_id: policyId, subject_token: subjectToken }
  const response = await postExchange(baseUrl, fields)
  expect(response.status).toBe(200)
  return ((await response.json()) as { access_token: string }).access_token
}

async function call(baseUrl: string, token: string, model = 'gpu/echo'): Promise<number> {
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  })
  await response.text()
  return response.status
}

/** What a server makes of a token from before, of a new one, and whether the upstream takes its credential. */
async function statuses(env: Record<string, string> = {}): Promise<{ before: number; now: number }> {
  const { baseUrl, serving } = await installation.serve(undefined, env)
  const before = await call(baseUrl, accessToken)
  const now = await call(baseUrl, await exchangeAt(baseUrl, trusted))
  await serving.stop()
  return { before, now }
}

const runWith = (env: Record<string, string>, ...args: string[]): Promise<Finished> =>
  runCommand(args, { cwd: installation.folder, env: { ...installation.env, ...env } })

async function replace(args: string[] = [], env: Record<string, string> = {}): Promise<Replaced> {
  const { code, stdout, stderr } = await runWith(env, 'master-key', 'replace', ...args, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as Replaced
}

async function failure(args: string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await runWith(env, 'master-key', 'replace', ...args)
  expect(stdout).toBe('')
  return { code, stderr }
}

const encrypted = () => rowsInFile(installation.databasePath, 'select private_key_encrypted as text from signing_keys')
const keyFiles = () =>
  readdirSync(installation.folder)
    // What the server has seen of its database lies beside the key.
    .filter((name) => name.startsWith('master.key') && !name.endsWith('.seen'))
    .toSorted()
const hexOf = (path: string) => readFileSync(path, 'utf8').trim()
/** The verifier keys of the audit log that have no end, once it has signed. */
async function auditSigners(): Promise<string[]> {
  const signed = await installation.run('audit', 'checkpoint')
  expect({ code: signed.code, stderr: signed.stderr }).toEqual({ code: 0, stderr: '' })
  const { stdout } = await installation.run('audit', 'key', '--json')
  const { keys } = JSON.parse(stdout) as { keys: { verifier_key: string; retired_at: string | null }[] }
  return keys.filter(({ retired_at }) => retired_at === null).map(({ verifier_key }) => verifier_key)
}
const nothingDone = { replaced: false, previous_master_key_file: null, signing_keys_reencrypted: 0 }

describe('with the old key available', () => {
  test('everything opens under a new key: tokens and credentials work as before', async () => {
    await prepare()
    const signers = await auditSigners()
    const old = hexOf(file)
    const replaced = await replace()
    expect(replaced).toEqual({
      replaced: true,
      finished: false,
      lost: false,
      dry_run: false,
      database: installation.databasePath,
      master_key_file: file,
      previous_master_key_file: expect.stringMatching(/master\.key\.old-[0-9a-f]{8}$/),
      signing_keys_reencrypted: 1,
      credentials_reencrypted: ['gpu'],
      signing_keys_ended: 0,
      credentials_dropped: [],
      signing_key: null,
    })
    expect(hexOf(file)).toMatch(/^[0-9a-f]{64}$/)
    expect(hexOf(file)).not.toBe(old)
    expect(hexOf(replaced.previous_master_key_file ?? '')).toBe(old)
    // The audit log signs with the same key as before.
    expect(await auditSigners()).toEqual(signers)
    expect(keyFiles()).toHaveLength(2)
    for (const name of keyFiles()) expect(statSync(join(installation.folder, name)).mode & 0o777).toBe(0o600)
    expect(await statuses()).toEqual({ before: 200, now: 200 })
  }, 60_000)

  test('signing keys that wait or have ended go along', async () => {
    await installation.run('signing-keys', 'rotate', '--revoke')
    await installation.run('signing-keys', 'rotate')
    expect(await replace()).toMatchObject({ signing_keys_reencrypted: 3 })
    const rotated = await installation.run('signing-keys', 'rotate', '--at-once')
    expect(rotated).toMatchObject({ code: 0, stderr: '' })
  }, 60_000)

  test('a new key from a file or the environment takes its place, and twice is once', async () => {
    const given = join(installation.folder, 'given')
    writeFileSync(given, `${newHex}\n`)
    expect(await replace(['--new-key-file', given])).toMatchObject({ replaced: true })
    expect(hexOf(file)).toBe(newHex)
    expect(await replace(['--new-key-file', given])).toMatchObject(nothingDone)
    expect(await replace([], { LATCHKEY_NEW_MASTER_KEY: oldHex })).toMatchObject({ replaced: true })
    expect(hexOf(file)).toBe(oldHex)
    expect(keyFiles()).toHaveLength(3)
  }, 60_000)

  test('a key that is a value is replaced in the database alone, and says what to set', async () => {
    expect(await replace([], { LATCHKEY_NEW_MASTER_KEY: oldHex })).toMatchObject({ replaced: true })
    rmSync(file)
    ;({ trusted, accessToken } = await prepareIn(installation, value(oldHex)))
    const both = { ...value(oldHex), LATCHKEY_NEW_MASTER_KEY: newHex }
    const { code, stdout } = await runWith(both, 'master-key', 'replace')
    expect(code).toBe(0)
    expect(stdout).toMatch(/Set LATCHKEY_MASTER_KEY to the new key/)
    expect(stdout).not.toContain(newHex)
    expect(keyFiles().filter((name) => !name.includes('.old-'))).toEqual([])
    expect(await replace([], both)).toMatchObject({ ...nothingDone, master_key_file: null })
    expect(await statuses(value(newHex))).toEqual({ before: 200, now: 200 })
  }, 60_000)

  test('a dry run says the same and changes nothing', async () => {
    const before = { hex: hexOf(file), rows: encrypted(), files: keyFiles() }
    expect(await replace(['--dry-run'])).toMatchObject({ replaced: false, dry_run: true, signing_keys_reencrypted: 1 })
    expect({ hex: hexOf(file), rows: encrypted(), files: keyFiles() }).toEqual(before)
    const same = await runWith({ LATCHKEY_NEW_MASTER_KEY: before.hex }, 'master-key', 'replace', '--dry-run')
    expect(same.stdout).toContain('already uses this master key')
  })

  test('a link to the file stays a link, and the file keeps its mode', async () => {
    const secrets = join(installation.folder, 'secrets')
    mkdirSync(secrets)
    renameSync(file, join(secrets, 'key'))
    chmodSync(join(secrets, 'key'), 0o640)
    symlinkSync('secrets/key', file)
    const old = hexOf(file)
    expect(await replace()).toMatchObject({ replaced: true })
    expect(hexOf(file)).not.toBe(old)
    expect(keyFiles()).toEqual(['master.key'])
    expect(statSync(join(secrets, 'key')).mode & 0o777).toBe(0o640)
    expect((await installation.run('signing-keys', 'rotate')).code).toBe(0)
  })
})

describe('it refuses', () => {
  test('while a server runs, also over its socket', async () => {
    const { serving, ask } = await installation.serve()
    const what = isServerKind ? 'Stop them first' : 'Stop the server first'
    expect(await failure([])).toEqual({ code: 1, stderr: expect.stringContaining(what) })
    await expect(ask('master_key.replace' as never)).rejects.toMatchObject({ code: 'conflict' })
    await serving.stop()
  })

  test('a key that does not open the database, and names what helps', async () => {
    const own = hexOf(file)
    writeFileSync(file, oldHex)
    const expected = { code: 3, stderr: expect.stringContaining('latchkey master-key replace --lost') }
    expect(await failure([])).toEqual(expected)
    const { code, stderr } = await installation.run('serve')
    expect({ code, stderr }).toEqual(expected)
    rmSync(file)
    const without = await installation.run('serve')
    expect({ code: without.code, stderr: without.stderr }).toEqual(expected)
    expect(without.stderr).toContain('ENOENT')

    writeFileSync(`${file}.old-12345678`, own)
    writeFileSync(file, oldHex)
    const { stderr: named } = await installation.run('serve')
    expect(named).toContain(`The key in "${file}.old-12345678" opens it`)
  }, 60_000)

  test.each([
    ['a value without a new one', [], value(oldHex), 'LATCHKEY_NEW_MASTER_KEY'],
    ['a new key of another form', [], { LATCHKEY_NEW_MASTER_KEY: 'f00' }, '64 hex digits'],
    ['two new keys', ['--new-key-file', '/dev/null'], { LATCHKEY_NEW_MASTER_KEY: newHex }, 'one of them'],
    ['--lost without a word', ['--lost'], {}, '--yes'],
  ] as [string, string[], Record<string, string>, string][])('%s', async (_name, args, env, text) => {
    if ('LATCHKEY_MASTER_KEY' in env) {
      await replace([], { LATCHKEY_NEW_MASTER_KEY: oldHex })
      rmSync(file)
    }
    const { code, stderr } = await failure(args, env)
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(text) })
    expect(stderr).not.toContain('f00')
  })

  test('to give up a key that is not lost', async () => {
    const rows = encrypted()
    expect(await failure(['--lost', '--yes'])).toEqual({ code: 1, stderr: expect.stringContaining('is not lost') })
    expect(encrypted()).toEqual(rows)
  })

  test('to give up a key whose file is there and cannot be read', async () => {
    rmSync(file)
    symlinkSync('master.key', file)
    expect(await failure(['--lost', '--yes'])).toEqual({ code: 3, stderr: expect.stringContaining('ELOOP') })
  })
})

describe('with the old key lost', () => {
  for (const [name, lose] of [
    ['its file gone', () => rmSync(file)],
    ['another key in its file', () => writeFileSync(file, oldHex)],
    ['its file damaged', () => writeFileSync(file, 'damaged')],
  ] as const) {
    test(`${name}: a new key takes its place, and what was there stays aside`, async () => {
      const credential = join(installation.folder, 'secret')
      writeFileSync(credential, 'gpu-secret')
      const gpu = ['--name', 'gpu', '--inference-url', 'http://127.0.0.1:1/v1', '--credential-file', credential]
      expect((await installation.run('upstreams', 'add', ...gpu)).code).toBe(0)
      lose()
      const lost = existsSync(file) ? readFileSync(file, 'utf8') : undefined
      const replaced = await replace(['--lost', '--yes'])
      expect(replaced).toEqual({
        replaced: true,
        finished: false,
        lost: true,
        dry_run: false,
        database: installation.databasePath,
        master_key_file: file,
        previous_master_key_file: lost === undefined ? null : expect.stringContaining('.old-'),
        signing_keys_reencrypted: 0,
        credentials_reencrypted: [],
        signing_keys_ended: 1,
        credentials_dropped: ['gpu'],
        signing_key: expect.any(String),
      })
      const kept = replaced.previous_master_key_file
      expect(typeof kept === 'string' ? readFileSync(kept, 'utf8') : undefined).toBe(lost)
      expect((await installation.run('signing-keys', 'rotate', '--at-once')).code).toBe(0)
    }, 60_000)
  }

  test('old tokens end, new ones work, and a credential that is set again is sent', async () => {
    await prepare()
    const [signer] = await auditSigners()
    rmSync(file)
    const { code, stdout } = await runWith({}, 'master-key', 'replace', '--lost', '--yes', '--master-key-file', file)
    expect(code).toBe(0)
    expect(stdout).toContain(`latchkey upstreams update gpu --credential-file FILE --master-key-file ${file}\n`)
    const secret = join(installation.folder, 'secret')
    writeFileSync(secret, 'gpu-secret')
    expect((await installation.run('upstreams', 'update', 'gpu', '--credential-file', secret)).code).toBe(0)
    expect(await statuses()).toEqual({ before: 401, now: 200 })
    const after = await auditSigners()
    expect(after).toHaveLength(1)
    expect(after).not.toContain(signer)
  }, 60_000)

  test('a value is the new key itself', async () => {
    rmSync(file)
    const env = value(newHex)
    expect(await replace(['--lost', '--yes'], env)).toMatchObject({ replaced: true, master_key_file: null })
    expect((await runWith(env, 'signing-keys', 'rotate')).code).toBe(0)
    expect(keyFiles()).toEqual([])
  })

  test('it is in the changes, which hold no secret', async () => {
    await prepare()
    const { data: before } = JSON.parse((await installation.run('signing-keys', 'list', '--json')).stdout) as {
      data: Row[]
    }
    rmSync(file)
    const { signing_key } = await replace(['--lost', '--yes'])
    const { stdout } = await installation.run('audit', 'changes', '--json')
    const { data } = JSON.parse(stdout) as { data: Row[] }
    const made = data.filter(({ operation }) => operation === 'master_key.replace')
    expect(made).toHaveLength(3)
    expect(made).toContainEqual(expect.objectContaining({ kind: 'signing_key', target_id: signing_key, before: null }))
    expect(made).toContainEqual(
      expect.objectContaining({
        kind: 'signing_key',
        target_id: before[0]?.id,
        before: expect.objectContaining({ retired_at: null }),
        after: expect.objectContaining({ retired_at: expect.any(String) }),
      }),
    )
    expect(made).toContainEqual(
      expect.objectContaining({
        kind: 'upstream',
        before: expect.objectContaining({ name: 'gpu', has_credential: true }),
        after: expect.objectContaining({ name: 'gpu', has_credential: false }),
      }),
    )
    expect(stdout).not.toMatch(/encrypted|gpu-secret/)
  }, 60_000)

  test('on a terminal it shows what is lost and asks', async () => {
    await prepare()
    rmSync(file)
    const answered = async (answer: string) => {
      let shown = ''
      const child = Bun.spawn([...compiledProgram(), 'master-key', 'replace', '--lost'], {
        cwd: installation.folder,
        env: installation.env,
        terminal: {
          data: (terminal, chunk) => {
            shown += Buffer.from(chunk).toString()
            if (Buffer.from(chunk).includes('[y/N]')) terminal.write(`${answer}\r`)
          },
        },
      })
      return { code: await child.exited, shown }
    }
    const refused = await answered('n')
    expect(refused).toEqual({ code: 1, shown: expect.stringContaining('gpu') })
    expect(refused.shown).toContain('Nothing was changed')
    expect(keyFiles()).toEqual([])
    expect((await answered('y')).code).toBe(0)
    expect((await installation.run('signing-keys', 'rotate', '--at-once')).code).toBe(0)
  }, 60_000)
})
