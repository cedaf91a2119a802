// The page `workloads`: its recipes run as they stand there, and its list of identities is that of the program.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { identityForms } from '../../src/agent/identity.ts'
import { topics } from '../../src/manual/topics.ts'
import { compiledProgram } from '../support/compiled-program.ts'
import { type Federation, runCommand, startFederation, temporaryFolder } from '../support/latchkey.ts'
import { codeUnder, namesIn, rowsOf, sectionOf } from '../support/manual.ts'

const page = topics.get('workloads') ?? ''
const folder = temporaryFolder()
let federation: Federation
let env: Record<string, string>

beforeAll(async () => {
  federation = await startFederation()
  writeFileSync(join(folder.path, 'jwt'), await federation.mint())
  mkdirSync(join(folder.path, 'bin'))
  const program = join(folder.path, 'bin/latchkey')
  writeFileSync(
    program,
    `#!/bin/sh\nexec ${compiledProgram()
      .map((word) => `'${word}'`)
      .join(' ')} "$@"\n`,
  )
  chmodSync(program, 0o755)
  env = {
    PATH: `${join(folder.path, 'bin')}:${process.env.PATH}`,
    XDG_RUNTIME_DIR: folder.path,
    LATCHKEY_URL: federation.server.baseUrl,
    LATCHKEY_POLICY: federation.policy.id,
    LATCHKEY_IDENTITY_TOKEN_FILE: join(folder.path, 'jwt'),
  }
})
afterAll(async () => {
  await federation.stop()
  folder.remove()
})

test('the page lists every form of --identity, and no other', () => {
  const listed = rowsOf(sectionOf('workloads', 'Identity')).map(([cell]) => namesIn(cell)[0] ?? '')
  expect(listed.toSorted()).toEqual(identityForms.split(/, | or /).toSorted())
})

test.skipIf(Bun.which('curl') === null)(
  'the recipe for curl prints what the upstream answers (needs curl)',
  async () => {
    const options = { cwd: folder.path, env, program: ['sh'] }
    const { code, stdout, stderr } = await runCommand(['-ec', codeUnder('curl', 'sh', page)], options)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({ choices: [{ message: { content: 'Hello' } }] })
  },
)

const python = Bun.which('python3')
const lacksPython = python === null || Bun.spawnSync([python, '-c', 'import openai']).exitCode !== 0
test.skipIf(lacksPython)('the recipe for Python prints what the upstream answers (needs openai)', async () => {
  const options = { cwd: folder.path, env, program: [python ?? ''] }
  const { code, stdout } = await runCommand(['-c', codeUnder('Python', 'python', page)], options)
  expect({ code, text: stdout.trim() }).toEqual({ code: 0, text: 'Hello' })
})

test.skipIf(python === null)(
  'the recipe without the program is a function of 25 lines that returns a token (needs python3)',
  async () => {
    const [, recipe = ''] = [...page.matchAll(/^```python\n([\s\S]*?)^```$/gm)].map(([, code]) => code)
    expect(recipe.trim().split('\n').length).toBeLessThanOrEqual(25)
    const options = { cwd: folder.path, env, program: [python ?? ''] }
    const { code, stdout, stderr } = await runCommand(
      ['-c', `${recipe}\nprint(access_token(), access_token())`],
      options,
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const [first = '', again] = stdout.trim().split(' ')
    expect(first).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+$/)
    expect(again).toBe(first)
  },
)

test('the settings of Claude Code and Codex CLI name a command that prints a token', async () => {
  const { apiKeyHelper } = JSON.parse(codeUnder('Claude Code', 'json', page)) as { apiKeyHelper: string }
  type Codex = { model_providers: { latchkey: { auth: { command: string; args: string[] } } } }
  const codex = Bun.TOML.parse(codeUnder('Codex CLI', 'toml', page)) as Codex
  const { command, args } = codex.model_providers.latchkey.auth
  for (const line of [apiKeyHelper, [command, ...args].join(' ')]) {
    const script = line.replace('/usr/local/bin/', '')
    const { code, stdout } = await runCommand(['-c', script], { cwd: folder.path, env, program: ['/bin/sh'] })
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^ey[\w-]+\.[\w-]+\.[\w-]+\n$/) })
  }
})
