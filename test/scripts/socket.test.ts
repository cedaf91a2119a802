// Commands beside a running server: the same answers as without one, obeyed at the next exchange, and drawn harmlessly for a terminal.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createCommandRunner } from '../support/command-runner.ts'
import { auditOf } from '../support/exchange-outcome.ts'
import { onFile } from '../support/file-only.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'

let latchkey: PastedIssuer
let commands: ReturnType<typeof createCommandRunner>
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  commands = createCommandRunner(latchkey.folder)
})
afterAll(() => latchkey.stop())

test('a command prints what the server knows', async () => {
  const { key: _text, ...shown } = latchkey.key
  expect(await commands.json('keys', 'show', 'target')).toMatchObject(shown)
  const { findings: _findings, ...policy } = latchkey.policy
  expect(await commands.json('policies', 'list')).toMatchObject({ data: [policy] })
})

test('a pause is obeyed by the next exchange, and a resume as well', async () => {
  expect(await commands.json('policies', 'disable', 'policy')).toMatchObject({ enabled: false })
  const response = await latchkey.exchange(await latchkey.sign())
  expect(response.status).toBe(400)
  expect(await auditOf(latchkey, response)).toMatchObject([{ reason: 'policy_paused' }])
  expect(await commands.json('policies', 'enable', 'policy')).toMatchObject({ enabled: true })
  expect((await latchkey.exchange(await latchkey.sign())).status).toBe(200)
})

test('errors have the code and exit code that they have without a server', async () => {
  expect(await commands.failure('keys', 'show', 'none')).toMatchObject({ code: 1, error: { code: 'not_found' } })
  expect(await commands.failure('init')).toMatchObject({ code: 1, error: { code: 'conflict' } })
  expect(await commands.failure('audit', '--outcome', 'odd')).toMatchObject({ code: 2, error: { code: 'invalid' } })
})

test('a claim cannot write to the terminal of the one who reads the audit', async () => {
  const sub = 'a\u001b[2J\r\nfake line\u009b31m\u202eb\u2028'
  await latchkey.exchange(await latchkey.sign({ sub }))
  const { code, stdout } = await commands.run('audit', '--limit', '1')
  expect(code).toBe(0)
  const [, row, more] = stdout.split('\n')
  expect(row).toContain('subject_mismatch')
  expect(more).toMatch(/^There may be more rows. To continue: --before-id \d+$/)
  expect(stdout).not.toMatch(/[^\P{C}\n]|[\u2028\u2029]/u)
  expect(stdout).toContain(String.raw`a\u001b[2J\u000d\u000afake line`)
})

onFile('local socket').test('the socket takes operations by POST alone, and nothing else at all', async () => {
  const unix = `${latchkey.config.databasePath}.sock`
  const ask = async (method: string, path: string, body?: string) => {
    const response = await fetch(`http://localhost${path}`, { unix, method, body } as RequestInit)
    return { status: response.status, body: (await response.json()) as { error?: { code: string } } }
  }
  expect((await ask('POST', '/operations/keys.list', '{}')).status).toBe(200)
  for (const method of ['GET', 'PUT', 'DELETE'])
    expect(await ask(method, '/operations/keys.list')).toMatchObject({ status: 404 })
  for (const path of ['/', '/operations/', '/operations/keys.list/more', '/operations/toString', '/v1/keys'])
    expect(await ask('POST', path, '{}')).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  expect(await ask('POST', '/operations/keys.list', '{')).toMatchObject({ status: 400 })
})
