// The --json contract of the commands: one database from init to delete, each command its own process. A server answers them, in a
// third of the time; fault/one-holder.test.ts proves that commands answer alike without one.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Server } from '../../src/server/server.ts'
import { createCommandRunner, type JsonObject } from '../support/command-runner.ts'
import { serveInProcess } from '../support/in-process.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { createKeyPair } from '../support/subject-token.ts'

const folder = temporaryFolder()
const { env, run, json, failure } = createCommandRunner(folder.path)
let server: Server
afterAll(async () => {
  await server.stop()
  folder.remove()
})

const id = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const secret = expect.stringMatching(/^sk-lk-v1-[0-9a-f]{64}$/)
const common = { id, created_at: time, updated_at: time }

const unbounded = {
  expires_at: null,
  limit: null,
  limit_reset: null,
  limit_remaining: null,
  usage: 0,
  usage_daily: 0,
  usage_weekly: 0,
  usage_monthly: 0,
  requests_per_minute: null,
  tokens_per_minute: null,
  allowed_models: null,
  allowed_presets: null,
  concurrent_requests: null,
  queue_class: 'normal',
  queue_weight: 1,
  queue_seconds: 30,
  fair_by: 'key',
  labels: null,
  attribute_from_header: null,
  managed_by: null,
}

let initialized: JsonObject
let key: JsonObject
let issuer: JsonObject
let policy: JsonObject
beforeAll(async () => {
  const { publicJwk } = await createKeyPair('ES256', 'es')
  writeFileSync(join(folder.path, 'jwks.json'), JSON.stringify({ keys: [publicJwk] }))
  initialized = await json('init', '--owner', 'ada')
  server = await serveInProcess(env)
  key = await json('keys', 'create', '--name', 'app')
  issuer = await json(
    'issuers',
    'add',
    '--name',
    'idp',
    '--issuer-url',
    'https://idp.example.com',
    '--jwks-file',
    'jwks.json',
    '--clock-skew',
    '5s',
    '--shared',
    'no',
  )
  policy = await json(
    'policies',
    'create',
    '--name',
    'ci',
    '--issuer',
    String(issuer.id),
    '--key',
    String(key.hash),
    ...rules,
  )
})
const rules = [
  '--audience',
  'aud',
  '--subject',
  'sub',
  '--require-scope',
  'deploy',
  '--require-token-type',
  'id',
  '--max-lifetime',
  '5m',
]

describe('what is created is printed whole:', () => {
  test('init, with the first management key as `key`', () => {
    expect(initialized).toEqual({
      database: join(folder.path, 'latchkey.db'),
      master_key_file: join(folder.path, 'master.key'),
      organization: {
        ...common,
        name: 'default',
        plan: 'enterprise',
        workload_identity: true,
        record_claims: 'selected',
        time_zone: null,
        budget_headers: false,
        upstream_headers: false,
      },
      workspace: {
        id,
        name: 'default',
        organization_id: (initialized.organization as JsonObject).id,
        created_at: time,
      },
      management_key: expect.objectContaining({ ...common, kind: 'management', owner: 'ada', disabled: false }),
      key: secret,
    })
  })

  test('a key, with its text as `key` and its owner made when new', () => {
    const hash = new Bun.CryptoHasher('sha256').update(String(key.key)).digest('hex')
    const owner_id = expect.stringMatching(/^user_[0-9A-Za-z]{24}$/)
    const organization_id = (initialized.organization as JsonObject).id
    expect(key).toEqual({
      ...common,
      hash,
      name: 'app',
      label: `${String(key.key).slice(0, 13)}…${String(key.key).slice(-4)}`,
      previous_until: null,
      kind: 'inference',
      role: null,
      state: 'enabled',
      disabled: false,
      organization_id,
      workspace_id: (initialized.workspace as JsonObject).id,
      workspace: 'default',
      owner_id,
      owner: 'admin',
      key: secret,
      ...unbounded,
    })
  })

  test('an issuer', () => {
    expect(issuer).toMatchObject({
      ...common,
      name: 'idp',
      issuer_url: 'https://idp.example.com',
      key_source: 'jwks',
      jwks_url: null,
      clock_skew_seconds: 5,
    })
  })

  test('a policy, its issuer named by id and its key by hash', () => {
    expect(policy).toEqual({
      ...common,
      name: 'ci',
      organization_id: key.organization_id,
      issuer_id: issuer.id,
      issuer_name: 'idp',
      issuer_url: 'https://idp.example.com',
      issuer_deleted: false,
      audience: 'aud',
      subject: 'sub',
      condition: null,
      condition_environment: null,
      attribute_to: null,
      required_scope: 'deploy',
      description: null,
      required_token_type: 'id',
      enabled: true,
      state: 'enabled',
      inactive_reason: null,
      replay_protection: false,
      allowed_models: null,
      allowed_presets: null,
      key_id: key.id,
      key_name: 'app',
      role: null,
      key_disabled: false,
      key_deleted: false,
      max_lifetime_seconds: 300,
      lint_exceptions: null,
      managed_by: null,
      tests: null,
      findings: [],
    })
  })
})

/** Shown and listed, but not part of what a change returns. */
const never = { last_used_at: null, last_refused_at: null, last_refused_reason: null }

test('a key is never shown again, neither in JSON nor in text', async () => {
  const { key: text, ...shown } = key
  expect(await json('keys', 'show', 'app')).toEqual({ ...shown, ...never, limited_by: [] })
  const outputs = await Promise.all([
    run('keys', 'list', '--json'),
    run('keys', 'list'),
    run('keys', 'show', String(key.id)),
  ])
  for (const { stdout } of outputs) {
    expect(stdout).not.toContain(String(text))
    expect(stdout).not.toContain(String(initialized.key))
    expect(stdout).not.toMatch(/sk-lk-v1-[0-9a-f]{64}/)
  }
})

test('lists are { data: [...] } of what show prints, and empty ones are empty', async () => {
  const { findings: _found, ...listed } = policy
  expect(await json('policies', 'list')).toEqual({ data: [{ ...listed, ...never }] })
  expect(await json('issuers', 'list')).toEqual({ data: [{ ...issuer, ...never }] })
  expect(await json('organizations', 'list')).toEqual({ data: [initialized.organization] })
  expect(await json('audit')).toEqual({ data: [] })
  const { data: changes } = (await json('audit', 'changes', '--limit', '1')) as { data: JsonObject[] }
  expect(changes).toHaveLength(1)
  expect(await json('audit', 'changes', '--until', '2026-01-01')).toEqual({ data: [] })
  expect(await json('audit', '--until', '2026-01-01')).toEqual({ data: [] })
  expect(await failure('audit', 'changes', '--organization', 'none')).toMatchObject({ code: 1 })
  expect(await json('usage')).toEqual({ data: [] })
})

test('updates print the whole object; --no-require-… removes one check and leaves the other', async () => {
  const expected = { ...policy, updated_at: time }
  expect(await json('policies', 'update', 'ci', '--no-require-scope')).toEqual({ ...expected, required_scope: null })
  const renamed = await json('policies', 'update', String(policy.id), '--name', 'cd', '--no-require-token-type')
  expect(renamed).toEqual({ ...expected, name: 'cd', required_scope: null, required_token_type: null })
  expect(await json('policies', 'update', 'cd', '--require-scope', 'new')).toEqual({
    ...renamed,
    updated_at: time,
    required_scope: 'new',
  })
  expect(await json('policies', 'disable', 'cd')).toMatchObject({ id: policy.id, enabled: false })
})

test('--no-subject and --no-condition take one away where the other stays', async () => {
  const at = ['policies', 'update', 'cd']
  expect(await json(...at, '--condition', 'subject == "sub"', '--no-subject')).toMatchObject({
    subject: null,
    condition: 'subject == "sub"',
  })
  expect((await failure(...at, '--no-condition')).error.message).toContain('--subject, --condition')
  expect(await json(...at, '--subject', 'sub', '--no-condition')).toMatchObject({
    subject: 'sub',
    condition: null,
    condition_environment: null,
  })
  expect(await json(...at, '--audience', 'aud')).toMatchObject({ subject: 'sub', condition: null })
})

test('what stops policies from exchanging names them, and nothing where none was stopped', async () => {
  await json('keys', 'create', '--name', 'shared')
  await json(
    'issuers',
    'add',
    '--name',
    'brief',
    '--issuer-url',
    'https://brief.example.com',
    '--jwks-file',
    'jwks.json',
  )
  for (const name of ['one', 'two'])
    await json('policies', 'create', '--name', name, '--issuer', 'brief', '--key', 'shared', ...rules)
  const policies_affected = ['one', 'two']
  expect(await json('keys', 'disable', 'shared')).toMatchObject({ name: 'shared', disabled: true, policies_affected })
  expect(await json('keys', 'disable', 'shared')).not.toHaveProperty('policies_affected')
  expect(await json('keys', 'enable', 'shared')).not.toHaveProperty('policies_affected')
  await json('policies', 'disable', 'one')
  const { stdout } = await run('issuers', 'delete', 'brief')
  expect(stdout).toEndWith('\n1 policy has become inactive: two\n')
  expect((await run('keys', 'delete', 'shared')).stdout).toMatch(/^Deleted \S+\n$/)
  for (const name of policies_affected) await json('policies', 'delete', name)
})

test('an issuer is shown with its CA, how long its keys last, and the keys themselves', async () => {
  const linesOf = async (name: string) =>
    Object.fromEntries(
      (await run('issuers', 'show', name)).stdout.split('\n').map((line) => line.split(/ {2,}/) as [string, string]),
    )
  expect(await linesOf('idp')).toMatchObject({
    keys: 'es ES256',
    'keys stale after': 'never',
    'private CA': 'none',
  })
  const ca = join(import.meta.dirname, '../fixtures/tls/ca.pem')
  const made = await json(
    'issuers',
    'add',
    '--name',
    'site',
    '--issuer-url',
    'https://site.example.com',
    '--ca-file',
    ca,
  )
  expect(made).toMatchObject({ keys: [] })
  expect(await linesOf('site')).toMatchObject({
    keys: 'none yet',
    'keys stale after': '86400 s without renewal',
    'private CA': expect.stringMatching(
      /^CN=Latchkey test CA \(until \d{4}-\d\d-\d\d, SHA-256 ([0-9A-F]{2}:){7}[0-9A-F]{2}…\)$/,
    ),
  })
  await json('issuers', 'delete', 'site')
})

test('a key set that cannot be used is reported by issuers verify, with exit code 1', async () => {
  writeFileSync(join(folder.path, 'empty.json'), '{"keys":[]}')
  const args = ['issuers', 'verify', '--issuer-url', 'https://idp.example.com', '--jwks-file', 'empty.json']
  const { code, stdout } = await run(...args, '--json')
  expect({ code, report: JSON.parse(stdout) }).toMatchObject({
    code: 1,
    report: { ok: false, checks: [{ step: 'keys', ok: false, detail: expect.any(String) }] },
  })
  expect(await run(...args)).toMatchObject({ code: 1, stdout: expect.stringContaining('✗ keys'), stderr: '' })
})

test('a condition is saved with its environment, kept by other updates, and stands alone without a subject', async () => {
  const condition = 'claims.repository == "acme/app" && subject.startsWith("repo:")'
  const made = await json(
    'policies',
    'create',
    '--name',
    'cel',
    '--issuer',
    'idp',
    '--key',
    'app',
    '--audience',
    'a',
    '--condition',
    condition,
  )
  expect(made).toMatchObject({ subject: null, condition, condition_environment: 1 })
  expect(await json('policies', 'update', 'cel', '--audience', 'b')).toMatchObject({
    condition,
    condition_environment: 1,
  })
  expect((await run('policies', 'show', 'cel')).stdout).toContain(condition)
  await json('policies', 'delete', 'cel')
})

test('a policy reports when its key cannot serve', async () => {
  const spare = await json('keys', 'create', '--name', 'spare')
  await json('policies', 'create', '--name', 'spare', '--issuer', 'idp', '--key', 'spare', ...rules)
  const lineOf = async () => (await run('policies', 'show', 'spare')).stdout.match(/^target key +(.*)$/m)?.[1]
  expect(await lineOf()).toBe('spare')
  await json('keys', 'disable', 'spare')
  expect(await json('policies', 'show', 'spare')).toMatchObject({ key_disabled: true, key_deleted: false })
  expect(await lineOf()).toBe('spare (disabled)')
  await json('keys', 'delete', 'spare')
  expect(await json('policies', 'show', 'spare')).toMatchObject({ key_id: spare.id, key_deleted: true })
  expect(await lineOf()).toBe('spare (deleted)')
  await json('policies', 'delete', 'spare')
})

test('a cap and a switch are set and taken away again, and other updates leave them', async () => {
  expect(await json('issuers', 'update', 'idp', '--max-token-age', '1h')).toMatchObject({
    max_token_age_seconds: 3_600,
  })
  expect(await json('issuers', 'update', 'idp', '--clock-skew', '5')).toMatchObject({ max_token_age_seconds: 3_600 })
  expect(await json('issuers', 'update', 'idp', '--no-max-token-age')).toMatchObject({ max_token_age_seconds: null })
  expect(await json('issuers', 'update', 'idp', '--shared', 'yes')).toMatchObject({ shared: true })
  expect(await json('issuers', 'update', 'idp', '--shared', 'no')).toMatchObject({ shared: false })
  expect(await json('policies', 'update', 'cd', '--replay-protection')).toMatchObject({ replay_protection: true })
  expect(await json('policies', 'update', 'cd', '--audience', 'aud')).toMatchObject({ replay_protection: true })
  expect(await json('policies', 'update', 'cd', '--no-replay-protection')).toMatchObject({ replay_protection: false })
})

test('a parent in another organization is named within it', async () => {
  const research = await json('organizations', 'create', 'research', '--plan', 'business')
  expect(research).toEqual({
    ...common,
    name: 'research',
    plan: 'business',
    workload_identity: true,
    record_claims: 'selected',
    time_zone: null,
    budget_headers: false,
    upstream_headers: false,
  })
  expect(await json('organizations', 'plan', String(research.id), 'free')).toMatchObject({
    plan: 'free',
    workload_identity: false,
  })
  const made = await json('keys', 'create', '--name', 'app', '--organization', 'research', '--management', 'read-only')
  expect(made).toMatchObject({ organization_id: research.id, kind: 'management_read_only', role: 'viewer' })
  const auditor = await json(
    'keys',
    'create',
    '--name',
    'a',
    '--organization',
    'research',
    '--management',
    '--role',
    'auditor',
  )
  expect(auditor).toMatchObject({ kind: 'management_read_only', role: 'auditor' })
  expect((await failure('keys', 'show', String(made.id))).error.code).toBe('not_found')
})

describe('a failure is { error: { code, message } } on standard error, with its exit code:', () => {
  const create = ['policies', 'create', '--name', 'x', '--issuer', 'idp', '--key', 'app', '--audience', 'a']
  const rows: [name: string, args: string[], code: number, error: string, message: RegExp][] = [
    ['neither subject nor condition', create, 2, 'invalid', /--subject, --condition/],
    [
      'an unknown issuer',
      [...create, '--subject', 's', '--issuer', 'none'],
      1,
      'not_found',
      /"none".*; see: latchkey issuers list/,
    ],
    [
      'a target that is a management key',
      [...create, '--subject', 's', '--key', 'first management key'],
      2,
      'invalid',
      /management/,
    ],
    ['an update of nothing', ['policies', 'update', 'ci'], 2, 'invalid', /Nothing to change/],
    ['an update of nothing', ['issuers', 'update', 'idp'], 2, 'invalid', /Nothing to change/],
    ['a name that is taken', ['keys', 'create', '--name', 'app'], 1, 'conflict', /"app"/],
    ['a second init', ['init'], 1, 'conflict', /already initialized/],
    [
      'a plain http issuer',
      ['issuers', 'add', '--name', 'h', '--issuer-url', 'http://idp.example.com'],
      2,
      'invalid',
      /https/,
    ],
    ['an option that is missing', ['keys', 'create'], 2, 'usage', /--name/],
    ['an unknown option', ['keys', 'list', '--color'], 2, 'usage', /--color/],
    ['an unknown command', ['keys', 'destroy'], 2, 'usage', /destroy/],
    ['a number that is none', ['audit', '--limit', 'ten'], 2, 'usage', /whole number/],
    [
      'a database that is not there',
      ['keys', 'list', '--database-url', 'file:none.db'],
      3,
      'configuration',
      /latchkey init/,
    ],
  ]
  for (const [name, args, code, error, message] of rows) {
    test(`${code} ${error} for ${name}`, async () => {
      const told = await failure(...args)
      expect(told).toMatchObject({ code, error: { code: error } })
      expect(told.error.message).toMatch(message)
      expect(told.error.message).not.toMatch(/\n|\.$/)
    })
  }

  test('of a condition shows the place below the text, also without --json', async () => {
    const told = await failure(...create, '--condition', 'subject == "s" &&\n  subjekt == "t"')
    expect(told).toMatchObject({ code: 2, error: { code: 'invalid' } })
    expect(told.error.message.split('\n')).toEqual([
      expect.stringMatching(/line 2, column 3: .*subjekt/),
      '    subjekt == "t"',
      '    ^^^^^^^',
    ])
    const { stderr } = await run(...create, '--condition', 'subject == "s" && subjekt')
    expect(stderr.split('\n').slice(1)).toEqual(['  subject == "s" && subjekt', `  ${' '.repeat(18)}^^^^^^^`, ''])
  })

  test('without --json it is one sentence', async () => {
    expect(await run('keys', 'show', 'none')).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^latchkey: [^\n]*"none"[^\n]*\n$/),
    })
  })
})

test('what is deleted is gone from its list', async () => {
  expect(await json('policies', 'delete', String(policy.id))).toEqual({ id: policy.id, deleted: true })
  expect(await json('policies', 'list')).toEqual({ data: [] })
})

test('the changes are reported as the service shows things, in text with kind, name and both values', async () => {
  await json('policies', 'create', '--name', 'seen', '--issuer', 'idp', '--key', 'app', ...rules)
  await json('policies', 'disable', 'seen')
  await json('policies', 'delete', 'seen')
  const { data } = (await json('audit', 'changes', '--limit', '3')) as { data: JsonObject[] }
  expect(data).toMatchObject([
    { kind: 'policy', before: { deleted_at: null }, after: { deleted_at: time } },
    { before: { enabled: true, created_at: time }, after: { enabled: false, created_at: time } },
    { before: null, after: { name: 'seen', enabled: true } },
  ])
  const { stdout } = await run('audit', 'changes', '--limit', '3')
  const lines = stdout.split('\n').slice(1, 4)
  expect(lines.map((line) => line.split(/ {2,}/).slice(3, 6))).toEqual([
    ['policies.delete', 'policy seen', 'deleted'],
    ['policies.pause', 'policy seen', 'enabled: true → false'],
    ['policies.create', 'policy seen', 'new'],
  ])
  // What `audit prove --change` takes.
  expect(lines.map((line) => Number(line.split(' ')[0]))).toEqual(data.map(({ id }) => id as number))
})

test('the audit is narrowed by policy and reason, and a word that is no reason is refused', async () => {
  await json('policies', 'create', '--name', 'narrow', '--issuer', 'idp', '--key', 'app', ...rules)
  expect(await json('audit', '--policy', 'narrow', '--reason', 'audience_mismatch')).toEqual({ data: [] })
  expect((await run('audit', '--policy', 'narrow')).stdout).toBe('No matches\n')
  expect(await failure('audit', '--policy', 'none')).toMatchObject({ code: 1, error: { code: 'not_found' } })
  expect(await failure('audit', '--reason', 'audience')).toMatchObject({ code: 2, error: { code: 'invalid' } })
})

test('a policy that is only tried has no id', async () => {
  const draft = await json(
    'policies',
    'create',
    '--name',
    'dry',
    '--issuer',
    'idp',
    '--key',
    'app',
    '--dry-run',
    ...rules,
  )
  expect(draft).toMatchObject({ name: 'dry', dry_run: true })
  expect(Object.keys(draft)).not.toContainAnyValues(['id', 'created_at', 'updated_at'])
})
