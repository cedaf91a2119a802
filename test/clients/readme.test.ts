// The README's own exchange snippets, run as they stand there.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Federation, type Row, runCommand, startFederation, temporaryFolder } from '../support/latchkey.ts'

const root = join(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
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

/** The code block under a heading. */
function snippetOf(heading: string): string {
  const section = readme.split(/^### /m).find((text) => text.startsWith(`${heading}\n`))
  const code = section?.match(/^```\w+\n([\s\S]*?)^```$/m)?.[1]
  if (code === undefined) throw new Error(`The README has no snippet under ${heading}`)
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

const shell = ['bash', 'curl', 'jq']
test.skipIf(shell.some((tool) => !Bun.which(tool)))(
  'curl: the token comes back, and a refusal fails the line',
  async () => {
    const script = `set -e\n${snippetOf('curl')}\necho "$TOKEN"`
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
