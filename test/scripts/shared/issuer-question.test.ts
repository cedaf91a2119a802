// At a terminal, which the operating system plays, a command asks whether strangers get tokens of an issuer, and stores the answer.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Server } from '../../../src/server/server.ts'
import { compiledProgram } from '../../support/compiled-program.ts'
import { serveInProcess } from '../../support/in-process.ts'
import { runCommand, temporaryFolder } from '../../support/latchkey.ts'

const folder = temporaryFolder()
const env = { LATCHKEY_DATABASE_URL: `file:${join(folder.path, 'latchkey.db')}` }
const issuer = { name: 'sso', issuer_url: 'https://sso.example.com' }
const question = 'Type yes or no: '
let server: Server
beforeAll(async () => {
  expect((await runCommand(['init'], { cwd: folder.path, env })).code).toBe(0)
  server = await serveInProcess(env)
  await server.runOperation('keys.create', { name: 'batch' })
  await server.runOperation('issuers.add', issuer)
})
beforeEach(() => server.runOperation('issuers.update', { issuer: 'sso', shared: null }))
afterAll(async () => {
  await server.stop()
  folder.remove()
})

/** Runs a command and types `answer` as soon as it asks. */
async function onTerminal(answer: string, ...args: string[]): Promise<{ code: number; written: string }> {
  let written = ''
  let isAnswered = false
  const decoder = new TextDecoder()
  const closed = Promise.withResolvers<void>()
  const data = (terminal: Bun.Terminal, chunk: Uint8Array) => {
    written += decoder.decode(chunk, { stream: true })
    if (isAnswered || !written.includes(question)) return
    isAnswered = true
    terminal.write(answer)
  }
  const terminal = { cols: 250, rows: 40, data, exit: () => closed.resolve() }
  const child = Bun.spawn([...compiledProgram(), ...args], {
    cwd: folder.path,
    env: { ...env, NO_COLOR: '1' },
    terminal,
  })
  const code = await child.exited
  await closed.promise
  child.terminal?.close()
  return { code, written: Bun.stripANSI(written).replaceAll('\r', '') }
}

const create = (name: string, ...more: string[]) => [
  ...['policies', 'create', '--name', name, '--issuer', 'sso', '--audience', 'llm', '--key', 'batch'],
  ...['--condition', 'claims.team == "ml"', ...more],
]
const storedAnswer = async () => (await server.runOperation('issuers.show', { issuer: 'sso' })).shared
const policyNames = async () => (await server.runOperation('policies.list', {})).data.map(({ name }) => name)

test('no is stored, and the policy is saved', async () => {
  const { code, written } = await onTerminal('no\r', ...create('own'))
  expect(written).toContain('Can strangers get tokens of the issuer sso (https://sso.example.com)?\n')
  expect(written).toContain('Workloads send federation_policy_id=')
  expect({ code, answer: await storedAnswer() }).toEqual({ code: 0, answer: false })
  expect(await policyNames()).toContain('own')
  await server.runOperation('policies.update', { policy: 'own', condition: null, subject: 'batch' })
})

test('yes is stored, and the policy is refused for what it is', async () => {
  const { code, written } = await onTerminal('yes\r', ...create('shared'))
  expect(written).toContain('The policy is too wide: not-decided.')
  expect({ code, answer: await storedAnswer() }).toEqual({ code: 2, answer: true })
  expect(await policyNames()).not.toContain('shared')
})

test.each([
  ['Enter', '\r'],
  ['another word', 'maybe\r'],
  ['the end of the input', '\u0004'],
])('%s is no answer', async (_, answer) => {
  const { code, written } = await onTerminal(answer, ...create('open'))
  expect(written).toContain('Nobody has answered whether strangers can get tokens of the issuer "sso"')
  expect(written).toContain('(latchkey issuers update sso --shared no, or yes)')
  expect({ code, answer: await storedAnswer() }).toEqual({ code: 2, answer: null })
})

test('an update asks for the issuer of its policy', async () => {
  await server.runOperation('policies.create', {
    ...{ name: 'edited', issuer: 'sso', audience: 'llm', key: 'batch', subject: 'batch' },
  })
  const edit = ['policies', 'update', 'edited', '--condition', 'true', '--no-subject']
  const { code, written } = await onTerminal('no\r', ...edit)
  expect(written).toContain('warning vacuous')
  expect({ code, answer: await storedAnswer() }).toEqual({ code: 0, answer: false })
  await server.runOperation('policies.delete', { policy: 'edited' })
})

test('a dry run, JSON and a pipe do not ask', async () => {
  const runs = [
    await onTerminal('no\r', ...create('dry', '--dry-run')),
    await onTerminal('no\r', ...create('machine', '--json')),
    await runCommand(create('piped'), { cwd: folder.path, env }).then(({ code, stderr }) => ({
      code,
      written: stderr,
    })),
  ]
  for (const { code, written } of runs) {
    expect(written).toContain('Nobody has answered')
    expect(written).not.toContain(question)
    expect(code).toBe(2)
  }
  expect(await storedAnswer()).toBeNull()
})
