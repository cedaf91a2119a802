// The recipes of the README and the manual, run as they stand there.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkCondition } from '../../src/federation/condition/compile.ts'
import keycloak from '../fixtures/claims/keycloak.json' with { type: 'json' }
import { compiled, conditionToken } from '../support/condition.ts'
import { type Federation, type Row, runCommand, startFederation, temporaryFolder } from '../support/latchkey.ts'

const root = join(import.meta.dirname, '../..')
const page = (path: string) => readFileSync(join(root, path), 'utf8')
const recipes = page('src/manual/recipes.md')
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

/** The text under a heading. */
function sectionOf(heading: string, text = recipes): string {
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`))
  if (section === undefined) throw new Error(`There is no section ${heading}`)
  return section
}

/** The first code block under a heading. */
function snippetOf(heading: string, text = recipes): string {
  const code = sectionOf(heading, text).match(/^```\w+\n([\s\S]*?)^```$/m)?.[1]
  if (code === undefined) throw new Error(`There is no snippet under ${heading}`)
  return code
}

for (const client of ['`@openrouter/sdk`', '`openai`']) {
  test(`${client} prints what the upstream answers`, async () => {
    const program = [process.execPath, '-e', snippetOf(client)]
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
    const program = [python ?? '', '-c', snippetOf(`Python: \`${client}\``)]
    const { code, stdout, stderr } = await runCommand([], { cwd: folder.path, env, program })
    expect({ code, text: stdout.trim(), stderr }).toEqual({ code: 0, text: 'Hello', stderr: '' })
    const { data } = await federation.admin<{ data: Row[] }>('usage.requests', { limit: 1 })
    expect(data).toMatchObject([{ policy_id: federation.policy.id, completed: true }])
    const refused = await runCommand([], { cwd: folder.path, env: { ...env, JWT_FILE: '/dev/null' }, program })
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('subject_token') })
  })
}

test('Keycloak: the conditions hold for a token of its service account, and only for that', () => {
  const conditions = [...sectionOf('Keycloak').matchAll(/--condition '([^']+)'/g)].map((match) => match[1] ?? '')
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
  const subjects = [...sectionOf('GitHub Actions').matchAll(/`(repo:[^`]+)`/g)].map((match) => match[1])
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
  ['the manual', snippetOf('curl')],
  ['the README', snippetOf('Get an access token', page('README.md'))],
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
