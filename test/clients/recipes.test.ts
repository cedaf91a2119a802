// The recipes of the README and the manual, run as they stand there.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkCondition } from '../../src/federation/condition/compile.ts'
import buildkite from '../fixtures/claims/buildkite.json' with { type: 'json' }
import circleci from '../fixtures/claims/circleci.json' with { type: 'json' }
import keycloak from '../fixtures/claims/keycloak.json' with { type: 'json' }
import { compiled, conditionToken } from '../support/condition.ts'
import { type Federation, type Row, runCommand, startFederation, temporaryFolder } from '../support/latchkey.ts'
import { codeUnder, sectionOf } from '../support/manual.ts'

const root = join(import.meta.dirname, '../..')
const page = (path: string) => readFileSync(join(root, path), 'utf8')
const folder = temporaryFolder()
const tokenFile = join(folder.path, 'token')
let federation: Federation
let env: Record<string, string>

beforeAll(async () => {
  federation = await startFederation()
  const subjectToken = await federation.mint()
  // Many tools end a file with a line break.
  writeFileSync(tokenFile, `${subjectToken}\n`)
  env = {
    PATH: process.env.PATH ?? '',
    LATCHKEY: federation.server.baseUrl,
    POLICY: federation.policy.id,
    JWT: subjectToken,
    JWT_FILE: tokenFile,
  }
})
afterAll(async () => {
  await federation.stop()
  folder.remove()
})

for (const client of ['JavaScript: `@openrouter/sdk`', 'JavaScript: `openai`']) {
  test(`${client} prints what the upstream answers`, async () => {
    const program = [process.execPath, '-e', codeUnder(client)]
    const { code, stdout, stderr } = await runCommand([], { cwd: root, env, program })
    expect({ code, text: stdout.trim(), stderr }).toEqual({ code: 0, text: 'Hello', stderr: '' })
    const { data } = await federation.admin<{ data: Row[] }>('usage.requests', { limit: 1 })
    expect(data).toMatchObject([{ policy_id: federation.policy.id, completed: true }])
  })
}

const python = Bun.which('python3')
const pythonClients = ['openai', 'requests']
const lacksPython =
  python === null || Bun.spawnSync([python, '-c', `import ${pythonClients.join(', ')}`]).exitCode !== 0

for (const client of pythonClients) {
  const needs = 'needs python3 with openai and requests'
  test.skipIf(lacksPython)(`Python with ${client} prints what the upstream answers (${needs})`, async () => {
    const program = [python ?? '', '-c', codeUnder(`Python: \`${client}\``)]
    const { code, stdout, stderr } = await runCommand([], { cwd: folder.path, env, program })
    expect({ code, text: stdout.trim(), stderr }).toEqual({ code: 0, text: 'Hello', stderr: '' })
    const { data } = await federation.admin<{ data: Row[] }>('usage.requests', { limit: 1 })
    expect(data).toMatchObject([{ policy_id: federation.policy.id, completed: true }])
    const refused = await runCommand([], { cwd: folder.path, env: { ...env, JWT_FILE: '/dev/null' }, program })
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('subject_token') })
  })
}

const go = Bun.which('go')
test.skipIf(go === null)(
  'Go prints what the upstream answers (needs go)',
  async () => {
    writeFileSync(join(folder.path, 'main.go'), codeUnder('Go'))
    const program = [go ?? '', 'run', 'main.go']
    const goEnv = { ...env, HOME: process.env.HOME ?? folder.path, GOTOOLCHAIN: 'local', GOPROXY: 'off' }
    const answered = await runCommand([], { cwd: folder.path, env: goEnv, program })
    expect(answered).toEqual({ code: 0, stdout: 'Hello\n', stderr: '' })
    const refused = await runCommand([], { cwd: folder.path, env: { ...goEnv, JWT_FILE: '/dev/null' }, program })
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('subject_token') })
  },
  // Where nothing is cached, the standard library is compiled first.
  120_000,
)

/** The value of `--condition` in each command under a heading. */
function conditionsOf(heading: string): string[] {
  return [...sectionOf('recipes', heading).matchAll(/--condition '([^']+)'/g)].map((match) => match[1] ?? '')
}

const recordedConditions = [
  ['Buildkite', buildkite.claims, { build_branch: 'fix', pipeline_slug: 'app', organization_slug: 'other' }],
  [
    'CircleCI',
    circleci.claims,
    {
      'oidc.circleci.com/project-id': '9f8e7d6c-5b4a-4c3d-8e2f-1a0b9c8d7e6f',
      'oidc.circleci.com/vcs-origin': 'github.com/octocat/octo-repo',
      'oidc.circleci.com/vcs-ref': 'refs/heads/fix',
      'oidc.circleci.com/ssh-rerun': true,
    },
  ],
] as const
for (const [platform, claims, changes] of recordedConditions) {
  test(`${platform}: the condition holds for the recorded token, and for none with another value`, () => {
    const [condition = ''] = conditionsOf(platform)
    const token = (more: object) => ({ ...conditionToken({ ...claims, ...more }), subject: claims.sub })
    expect(checkCondition(compiled(condition), token({}))).toBeUndefined()
    for (const [name, value] of Object.entries(changes))
      expect(checkCondition(compiled(condition), token({ [name]: value }))).toMatchObject({
        refused: 'condition_false',
      })
  })
}

test('Keycloak: the conditions hold for a token of its service account, and only for that', () => {
  const conditions = conditionsOf('Keycloak')
  expect(conditions).toHaveLength(2)
  const token = (more: object) => ({ ...conditionToken({ ...keycloak.claims, ...more }), subject: keycloak.claims.sub })
  for (const source of conditions) expect(checkCondition(compiled(source), token({}))).toBeUndefined()
  const [role = '', scope = ''] = conditions
  const withoutRole = token({ realm_access: { roles: ['default-roles-acme'] } })
  expect(checkCondition(compiled(role), withoutRole)).toMatchObject({ refused: 'condition_false' })
  for (const text of ['email profile', 'llm-admin', 'all llms', ''])
    expect(checkCondition(compiled(scope), token({ scope: text }))).toMatchObject({ refused: 'condition_false' })
  for (const text of ['llm', 'llm email', 'email llm'])
    expect(checkCondition(compiled(scope), token({ scope: text }))).toBeUndefined()
})

test('GitHub Actions: both forms of the subject are those of the recorded tokens', () => {
  const subjects = [...sectionOf('recipes', 'GitHub Actions').matchAll(/`(repo:[^`]+)`/g)].map((match) => match[1])
  expect(subjects).toContain('repo:acme/app:ref:refs/heads/main')
  expect(subjects).toContain('repo:acme@162148032/app@797215326:ref:refs/heads/main')
})

test('nginx: the host, the client address and the scheme are forwarded', () => {
  for (const line of [
    'proxy_set_header Host $host;',
    'proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;',
    'proxy_set_header X-Forwarded-Proto $scheme;',
  ])
    expect(page('src/manual/operating.md')).toContain(line)
})

const shell = ['bash', 'curl', 'jq']
const curlSnippets: [page: string, snippet: string][] = [
  ['the manual', codeUnder('curl')],
  ['the README', codeUnder('Get an access token', 'sh', page('README.md'))],
]
test.skipIf(shell.some((tool) => !Bun.which(tool))).each(curlSnippets)(
  'curl, in %s: the token comes back, and a refusal fails the line',
  async (_, snippet) => {
    const script = `set -e\n${snippet}\necho "$TOKEN"`
    const exchanged = await runCommand(['-c', script], { cwd: folder.path, env, program: ['bash'] })
    expect(exchanged).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ey[\w.-]+\n$/) })
    const refused = await runCommand(['-c', script], { cwd: folder.path, env: { ...env, JWT: 'x' }, program: ['bash'] })
    expect(refused).toMatchObject({ stdout: '', stderr: expect.stringContaining('not a JWT') })
    expect(refused.code).not.toBe(0)
    const away = { ...env, LATCHKEY: 'http://127.0.0.1:1/v1' }
    const unreachable = await runCommand(['-c', script], { cwd: folder.path, env: away, program: ['bash'] })
    expect(unreachable).toMatchObject({ stdout: '', stderr: expect.stringContaining('curl:') })
    expect(unreachable.code).not.toBe(0)
  },
)
