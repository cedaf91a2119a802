// `config plan`, `apply`, `export` and `schema` by command: files, secrets, exit codes.
import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { hash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import Ajv2020 from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import { examples } from '../../scripts/shared/config-examples.ts'
import { readConfigFiles } from '../../scripts/shared/config-files.ts'
import { describeLong } from '../../scripts/shared/config-size.ts'
import { openSecretsFolder, writeSecrets } from '../../scripts/shared/secret-files.ts'
import { topics } from '../../src/manual/topics.ts'
import { createCommandRunner } from '../support/command-runner.ts'
import { listenLocally, runCommand } from '../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'

let latchkey: PastedIssuer
let commands: ReturnType<typeof createCommandRunner>
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  commands = createCommandRunner(latchkey.folder)
})
afterAll(() => latchkey.stop())

type Evidence = { data: object[] }
const path = (...names: string[]) => join(latchkey.folder, ...names)
function write(name: string, text: string): string {
  writeFileSync(path(name), text)
  return path(name)
}

test('the document of the manual is applied, with files beside it, and its plan is then empty', async () => {
  const document = /```yaml\n([\s\S]*?)```/.exec(topics.get('config') ?? '')?.[1] ?? ''
  mkdirSync(path('prompts'))
  write('prompts/support.txt', 'Be brief\n')
  write('credential', 'secret-1\n')
  const file = write('manual.yaml', document.replace('{ env: GPU_KEY }', '{ file: credential }'))
  const schema = JSON.parse((await commands.run('config', 'schema')).stdout) as object
  const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(schema)
  expect([validate(parse(document)), validate.errors]).toEqual([true, null])
  expect(validate({ latchkey: 1, keys: [{ name: 'a', secret: 'x' }] })).toBe(false)

  const planned = await commands.run('config', 'plan', file)
  expect(planned.stdout).toContain('+ create policies ci')
  expect(planned.stdout).toContain('credential: changed')
  expect((await commands.run('config', 'plan', file, '--check')).code).toBe(4)
  write('plan.json', (await commands.run('config', 'plan', file, '--json')).stdout)
  const applied = await commands.run(
    'config',
    'apply',
    file,
    '--plan-file',
    path('plan.json'),
    '--secrets-out',
    path('secrets'),
    '--revision',
    'v1',
  )
  expect(applied.stdout).toContain('6 created')
  expect(applied.stdout).not.toContain('sk-lk-v1-')
  const group = /--group (\S+)/.exec(applied.stdout)?.[1] ?? ''
  const evidence = JSON.parse((await commands.run('audit', 'changes', '--group', group, '--json')).stdout) as Evidence
  const sha256 = hash('sha256', readFileSync(file))
  expect(evidence.data).toHaveLength(7)
  expect(evidence.data.at(-1)).toMatchObject({ kind: 'document', after: { owner: 'platform', revision: 'v1', sha256 } })
  expect(readFileSync(path('secrets', 'ci'), 'utf8')).toMatch(/^sk-lk-v1-[0-9a-f]{64}\n$/)
  expect(statSync(path('secrets', 'ci')).mode & 0o777).toBe(0o600)
  expect(await commands.run('config', 'plan', file, '--check')).toMatchObject({ code: 0, stdout: 'No changes\n' })
  expect((await commands.run('presets', 'show', 'support')).stdout).toContain('Be brief')

  const wider = document
    .replace(' && claims.ref == "refs/heads/main"', '')
    .replace(/ {4}tests:[\s\S]*?(?=presets:)/, '')
  const { stdout } = await commands.run('config', 'plan', write('wider.yaml', wider.replace('{ env: GPU_KEY }', 'c')))
  expect(stdout).toContain('    The change widens the policy. This token would pass: {"')
  expect(stdout).toContain('\nWider than before: ci\n')
  expect((await commands.run('config', 'plan', path('wider.yaml'))).code).toBe(0)
  expect((await commands.run('config', 'plan', path('wider.yaml'), '--fail-on-wider')).code).toBe(1)
})

test('a credential comes from the environment, and a plan is refused once an object that it changes was saved again', async () => {
  const gpu = (models: string) =>
    `latchkey: 1\nowner: env\nupstreams:\n  - { name: big, base_url: http://10.0.0.7/v1, models: [${models}], credential: { env: BIG_KEY } }\n`
  const run = (...args: string[]) =>
    runCommand(args, { cwd: latchkey.folder, env: { ...commands.env, BIG_KEY: 'secret-of-the-environment' } })
  expect((await run('config', 'apply', write('env.yaml', gpu('a')))).code).toBe(0)
  expect(await run('config', 'plan', write('env.yaml', gpu('b')), '--check')).toMatchObject({ code: 4 })
  const { stdout } = await run('config', 'plan', path('env.yaml'), '--json')
  expect(stdout).not.toContain('secret-of-the-environment')
  const plan = write('env.json', stdout)
  await latchkey.admin('upstreams.update', { upstream: 'big', priority: 3 })
  const refused = await run('config', 'apply', path('env.yaml'), '--plan-file', plan)
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('has changed since the plan') })
  expect(await latchkey.admin('upstreams.show', { upstream: 'big' })).toMatchObject({
    models: ['a'],
    has_credential: true,
  })
})

test('a locked object is changed only with --force, which warns, and show and list name its owner', async () => {
  const file = write('locked.yaml', 'latchkey: 1\nowner: ops\nowner_locks: true\nkeys:\n  - name: held\n')
  expect((await commands.run('config', 'apply', file)).stdout).toContain('~ owner_locks of ops: false → true\n')
  const refused = await commands.run('keys', 'update', 'held', '--budget', '5')
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('locks the key "held"') })
  const forced = await commands.run('keys', 'update', 'held', '--budget', '5', '--force')
  expect(forced).toMatchObject({ code: 0, stderr: expect.stringContaining('Warning: The key "held" belongs to') })
  expect(forced.stdout).toMatch(/^managed by +ops$/m)
  expect((await commands.run('keys', 'list')).stdout).toContain('MANAGED BY')
})

test('a document is tested without a database, and one that is too wide or fails a test ends with code 1', async () => {
  const run = (...args: string[]) =>
    runCommand(args, { cwd: latchkey.folder, env: { LATCHKEY_DATABASE_URL: 'file:absent.db' } })
  const good = write('good.yaml', examples.get('github') ?? '')
  expect(await run('config', 'test', good)).toMatchObject({ code: 0, stdout: '2 policies, 5 tests, 0 failed\n' })
  const bad = write('bad.yaml', (examples.get('github') ?? '').replace('claims.repository_id == "456789" && ', ''))
  const tested = await run('config', 'test', bad)
  expect(tested.code).toBe(1)
  expect(tested.stdout).toContain('blocking github-environment-alone')
  expect(tested.stdout).toContain(
    '"the main branch of another repository does not pass": expected condition_false, got allow',
  )
  expect(tested.stdout).toContain('Cannot be applied: github-main\n')
  const lone = write('lone.yaml', 'latchkey: 1\npolicies: [{ name: p, issuer: i, key: k, audience: a, subject: s }]\n')
  expect(await run('config', 'test', lone)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no file has the issuer "i"'),
  })
  const shared = write(
    'shared.yaml',
    'latchkey: 1\nowner: other\nissuers: [{ name: i, issuer_url: https://i.example.com }]\n',
  )
  expect(await run('config', 'test', lone, shared)).toMatchObject({
    code: 0,
    stdout: '1 policies, 0 tests, 0 failed\n',
  })
  expect(existsSync(path('absent.db'))).toBe(false)
})

test('a server elsewhere plans and applies over HTTP, and its errors are those of the command', async () => {
  const { key } = await latchkey.admin<{ key: string }>('keys.create', { name: 'remote', kind: 'management' })
  const remote = ['--url', latchkey.server.baseUrl, '--key-file', write('management.key', `${key}\n`)]
  const file = write('remote.yaml', 'latchkey: 1\nowner: remote\nkeys: [{ name: far }]\n')
  expect(await commands.run('config', 'plan', file, '--check', ...remote)).toMatchObject({ code: 4 })
  const applied = await commands.run('config', 'apply', file, '--revision', 'v2', ...remote)
  expect(applied.stdout).toContain('far  sk-lk-v1-')
  expect(await commands.run('config', 'plan', file, '--check', ...remote)).toMatchObject({
    code: 0,
    stdout: 'No changes\n',
  })
  const upstreams = write('installation.yaml', 'latchkey: 1\nupstreams: []\n')
  expect(await commands.run('config', 'plan', upstreams, ...remote)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('upstreams belong to the installation'),
  })
  for (const [url, message] of [
    ['http://llm.example.com/v1', 'use an https:// URL'],
    ['http://127.0.0.1:1/v1', 'did not respond'],
  ] as const) {
    const { stderr } = await commands.run('config', 'plan', file, '--url', url, '--key-file', path('management.key'))
    expect(stderr).toContain(message)
  }
})

test('a server elsewhere that redirects gets the document and the key nowhere else', async () => {
  let received = 0
  const other = await listenLocally(async () => {
    received += 1
    return Response.json({ data: {} })
  })
  const redirecting = await listenLocally(async () => Response.redirect(`${other.url}/v1/config/plan`, 308))
  const file = write('redirected.yaml', 'latchkey: 1\nkeys: [{ name: far }]\n')
  const key = write('redirected.key', 'sk-lk-v1-secret\n')
  const { code, stderr } = await commands.run('config', 'plan', file, '--url', redirecting.url, '--key-file', key)
  expect({ code, received }).toEqual({ code: 1, received: 0 })
  expect(stderr).toContain('/config/plan responded with 308')
  for (const { listener } of [redirecting, other]) await listener.drain()
})

test('an export, in YAML or JSON, is a document whose plan is empty', async () => {
  for (const [name, flag] of [['export.yaml'], ['export.json', '--json']] as const) {
    const { stdout } = await commands.run('config', 'export', ...(flag === undefined ? [] : [flag]))
    expect(stdout).not.toContain('secret-1')
    expect((await commands.run('config', 'plan', write(name, stdout), '--check')).code).toBe(0)
  }
})

test('the documents of several owners are planned, tested and applied together, shown by owner, here and over HTTP', async () => {
  mkdirSync(path('teams'), { recursive: true })
  const platform = write(
    'platform.yaml',
    'latchkey: 1\nowner: base\nissuers: [{ name: common, issuer_url: https://common.example.com }]\n',
  )
  const team = (name: string) =>
    write(
      `teams/${name}.yaml`,
      `latchkey: 1\nowner: ${name}\nkeys: [{ name: ${name}-key }]\npolicies: [{ name: ${name}-ci, issuer: common, key: ${name}-key, audience: a, subject: s }]\n`,
    )
  const files = [team('red'), team('blue'), platform]
  expect((await commands.run('config', 'test', ...files)).stdout).toBe('2 policies, 0 tests, 0 failed\n')
  const { code, stdout } = await commands.run('config', 'plan', ...files, '--check')
  expect(code).toBe(4)
  expect(stdout.split('\n').filter((line) => /^(Owner|[+~>-] )/.test(line))).toEqual([
    ...['Owner red:', '+ create keys red-key', '+ create policies red-ci'],
    ...['Owner blue:', '+ create keys blue-key', '+ create policies blue-ci'],
    ...['Owner base:', '+ create issuers common'],
  ])
  const { key } = await latchkey.admin<{ key: string }>('keys.create', { name: 'several', kind: 'management' })
  const remote = ['--url', latchkey.server.baseUrl, '--key-file', write('several.key', key)]
  const planned = await commands.run('config', 'plan', ...files, '--json', ...remote)
  const applied = await commands.run(
    'config',
    'apply',
    ...files,
    '--plan-file',
    write('several.json', planned.stdout),
    ...remote,
  )
  expect(applied.stdout).toContain('5 created')
  expect(applied.stdout).toMatch(/^red-key {2}sk-lk-v1-/m)
  expect((await commands.run('config', 'plan', ...files, '--check')).stdout).toBe('No changes\n')
  const alone = await commands.run('config', 'plan', path('teams', 'red.yaml'), '--check')
  expect(alone).toMatchObject({ code: 0, stdout: 'No changes\n' })
})

test('drift has its own exit code, and a conflict or a policy that cannot be applied keeps code 1', async () => {
  const owned = (owner: string, more: string) => `latchkey: 1\nowner: ${owner}\n${more}`
  await commands.run('config', 'apply', write('drift.yaml', owned('drift', 'keys: [{ name: drifting }]\n')))
  const code = async (text: string) =>
    (await commands.run('config', 'plan', write('drifted.yaml', text), '--check')).code
  expect(await code(owned('drift', 'keys: [{ name: drifting }]\n'))).toBe(0)
  expect(await code(owned('drift', 'keys: [{ name: drifting, limit: 5 }]\n'))).toBe(4)
  expect(await code(owned('drift', 'owner_locks: true\nkeys: [{ name: drifting }]\n'))).toBe(4)
  expect(await code(owned('drift', 'keys: []\n'))).toBe(4)
  expect(await code(owned('other', 'keys: [{ name: drifting, limit: 5 }]\n'))).toBe(1)
  const wide = (examples.get('github') ?? '').replace('claims.repository_id == "456789" && ', '')
  expect(await code(wide)).toBe(1)
  expect(await code(owned('drift', 'keys: [{ name: drifting, limit: no }]\n'))).toBe(2)
})

test('an apply without --prune says what it does not delete, and how to', async () => {
  const file = (keys: string) => write('pending.yaml', `latchkey: 1\nowner: pending\nkeys: [${keys}]\n`)
  await commands.run('config', 'apply', file('{ name: kept }, { name: dropped-1 }, { name: dropped-2 }'))
  const { code, stdout } = await commands.run('config', 'apply', file('{ name: kept }'))
  expect(code).toBe(0)
  expect(stdout).toContain('no longer names it: keys dropped-1, keys dropped-2\n')
  expect(stdout).toContain('To delete this (2 in all), apply again with --prune.\n')
  expect(stdout).not.toContain('No changes')
  const changed = await commands.run('config', 'apply', file('{ name: kept, limit: 3 }'), '--json')
  expect(JSON.parse(changed.stdout)).toMatchObject({
    counts: { update: 1, delete: 0 },
    pending: [
      { kind: 'keys', name: 'dropped-1', action: 'delete' },
      { kind: 'keys', name: 'dropped-2', action: 'delete' },
    ],
  })
  const pruned = await commands.run('config', 'apply', file('{ name: kept, limit: 3 }'), '--prune')
  expect(pruned.stdout).toContain('2 deleted')
  expect(pruned.stdout).not.toContain('--prune')
  expect((await commands.run('config', 'apply', file('{ name: kept, limit: 3 }'))).stdout).toBe('No changes\n')
})

test('a new key is shown once without a folder for it', async () => {
  const file = write('key.yaml', 'latchkey: 1\nkeys:\n  - name: shown\n')
  expect((await commands.run('config', 'apply', file)).stdout).toMatch(
    /shown only once:\nshown {2}sk-lk-v1-[0-9a-f]{64}\n/,
  )
  expect((await commands.run('config', 'apply', file)).stdout).toBe('No changes\n')
})

test('files of one owner are joined, files of several owners are planned together, and all agree on the organization', async () => {
  const one = write('one.yaml', 'latchkey: 1\nowner: us\nkeys:\n  - name: k1\n')
  const two = write('two.yaml', 'latchkey: 1\nowner: us\nkeys:\n  - name: k2\n')
  expect((await commands.run('config', 'plan', one, two)).stdout).toContain('2 to create')
  const other = write('other.yaml', 'latchkey: 1\nowner: them\nkeys:\n  - name: k4\n')
  expect(readConfigFiles([one, other, two])).toEqual({
    documents: [
      { latchkey: 1, owner: 'us', keys: [{ name: 'k1' }, { name: 'k2' }] },
      { latchkey: 1, owner: 'them', keys: [{ name: 'k4' }] },
    ],
    sha256s: [
      hash('sha256', readFileSync(one, 'utf8') + readFileSync(two, 'utf8')),
      hash('sha256', readFileSync(other)),
    ],
  })
  const far = write('far.yaml', 'latchkey: 1\nowner: them\norganization: far\n')
  expect(() => readConfigFiles([one, far])).toThrow('differ in "organization"')
  const locked = write('us-locked.yaml', 'latchkey: 1\nowner: us\nowner_locks: true\n')
  expect(() => readConfigFiles([other, one, locked])).toThrow('differ in "owner_locks"')
  const none = write('none.yaml', 'latchkey: 1\nkeys:\n  - name: k3\n')
  expect(() => readConfigFiles([one, none])).toThrow('none.yaml" has no owner')
  expect(() => readConfigFiles([none, one])).toThrow('none.yaml" has no owner')
})

test.each([
  ['equal names', 'latchkey: 1\nkeys: []\nkeys: []\n', 'at line 3'],
  ['names that are equal as text', 'latchkey: 1\nkeys: [{ 1: a, "1": b }]\n', 'the name "1" twice'],
  ['another version of YAML', '%YAML 1.1\n---\nlatchkey: 1\nkeys: [{ name: a, disabled: no }]\n', 'YAML 1.2'],
  ['an alias', 'latchkey: 1\nkeys: &a []\npolicies: *a\n', 'has an alias'],
  [
    'a number that is too large',
    'latchkey: 1\npresets: [{ slug: a, config: { seed: 9007199254740993 } }]',
    '9007199254740993',
  ],
  ['an infinite number', 'latchkey: 1\nkeys: [{ name: a, limit: 1e400 }]', 'Infinity'],
  ['a list', '[]', 'it must be an object'],
  [
    'a variable that is not set',
    'latchkey: 1\nupstreams:\n  - { name: a, base_url: "http://h/v1", credential: { env: NOT_SET_HERE } }\n',
    'NOT_SET_HERE',
  ],
])('a file with %s is refused', (name, text, message) => {
  const file = write(`${name}.yaml`, text)
  expect(() => readConfigFiles([file])).toThrow(expect.objectContaining({ code: 'usage' }))
  expect(() => readConfigFiles([file])).toThrow(message)
})

test('the digest of a file is that of its bytes, with its byte order mark', () => {
  const file = write('marked.yaml', '\uFEFFlatchkey: 1\nkeys: []\n')
  expect(readConfigFiles([file])).toEqual({
    document: { latchkey: 1, keys: [] },
    sha256: hash('sha256', readFileSync(file)),
  })
})

test('a new key replaces a link or a readable file at its place, and one that cannot be written is not reported', () => {
  const folder = openSecretsFolder(path('replaced'))
  const [elsewhere, readable] = [write('elsewhere', 'kept'), join(folder, 'readable')]
  writeFileSync(readable, 'old', { mode: 0o644 })
  symlinkSync(elsewhere, join(folder, 'linked'))
  mkdirSync(join(folder, 'taken', 'inside'), { recursive: true })
  const names = ['linked', 'readable', 'taken']
  const shown = spyOn(process.stderr, 'write').mockImplementation(() => true)
  const paths = writeSecrets(
    folder,
    names.map((name) => ({ name, key: `key of ${name}` })),
  )
  expect(shown).toHaveBeenCalledWith(expect.stringContaining('the key is: key of taken'))
  shown.mockRestore()
  expect(process.exitCode).toBe(1)
  process.exitCode = 0
  expect(paths).toEqual([join(folder, 'linked'), readable])
  expect(readFileSync(elsewhere, 'utf8')).toBe('kept')
  for (const each of paths) expect(lstatSync(each).mode & 0o170777).toBe(0o100600)
  expect(readdirSync(folder).toSorted()).toEqual(names)
})

test('a document with more entries than a plan takes is refused before it is parsed, and its export warns', async () => {
  const entries = (count: number) => Array.from({ length: count }, (_, index) => `  - name: k${index}\n    limit: 5\n`)
  const long = write('long.yaml', `latchkey: 1\nkeys:\n${entries(5_001).join('')}broken: [\n`)
  expect(() => readConfigFiles([long])).toThrow('has more than 5,000 keys, the most that config plan takes')
  const whole = write('whole.yaml', `latchkey: 1\nkeys:\n${entries(3).join('')}issuers:\n${entries(3).join('')}`)
  expect(readConfigFiles([whole]).document?.keys).toHaveLength(3)
  const keys = Array.from({ length: 5_001 }, () => ({}))
  expect(describeLong({ latchkey: 1, keys })).toContain('more than 5,000 keys')
  expect(describeLong({ latchkey: 1, keys: keys.slice(1) })).toBeUndefined()
})

test('an export has the collections that are named, and says which there are', async () => {
  const { stdout } = await commands.run('config', 'export', '--json', '--only', 'issuers')
  expect(Object.keys(JSON.parse(stdout) as object)).toEqual(['latchkey', 'organization', 'issuers'])
  expect(await commands.failure('config', 'export', '--only', 'issuers', 'things')).toMatchObject({
    code: 2,
    error: {
      message:
        '"things" is not a valid value for --only: use issuers, keys, policies, presets, upstreams, prices, budgets or webhooks; see: latchkey config export --help',
    },
  })
  const help = (await commands.run('config', 'export', '--help')).stdout.replaceAll(/\s+/g, ' ')
  expect(help).toContain('only these collections: issuers, keys, policies, presets, upstreams, prices')
  expect((await commands.run('presets', '--help')).stdout).not.toMatch(/^ +(import|export)/m)
})
