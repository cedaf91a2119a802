// `policies lint` by command, and exceptions from the command line.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createCommandRunner } from '../support/command-runner.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'

let latchkey: PastedIssuer
let commands: ReturnType<typeof createCommandRunner>
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  commands = createCommandRunner(latchkey.folder)
  const { jwks } = latchkey.issuer
  const issuer_url = 'https://token.actions.githubusercontent.com'
  await latchkey.admin('issuers.add', { name: 'github', issuer_url, jwks })
})
afterAll(() => latchkey.stop())

const rules = ['--issuer', 'github', '--key', 'target', '--audience', 'llm']
const wide = [...rules, '--condition', 'claims.environment == "production"']

test('a policy that is too wide exits 2 and says how to save it nevertheless', async () => {
  const { code, error } = await commands.failure('policies', 'create', '--name', 'wide', ...wide)
  expect({ code, error }).toMatchObject({ code: 2, error: { code: 'invalid' } })
  expect(error.message).toContain('(--allow github-environment-alone --because TEXT)')
})

test('--allow saves it, and the reason is shown wherever the policy is', async () => {
  const allow = ['--allow', 'github-environment-alone', '--because', 'a demonstration']
  const made = await commands.run('policies', 'create', '--name', 'allowed', ...wide, ...allow)
  expect(made.stdout).toContain('Allowed because: a demonstration')
  expect((await commands.run('policies', 'show', 'allowed')).stdout).toMatch(
    /lint exceptions +github-env.*demonstration/,
  )
  expect((await commands.run('policies', 'list')).stdout).toMatch(/ALLOWED[\s\S]*github-environment-alone/)
  expect((await commands.run('policies', 'lint', 'allowed')).code).toBe(0)
  const { code } = await commands.failure('policies', 'update', 'allowed', '--no-allow')
  expect(code).toBe(2)
})

test('lint exits 1 if a policy of a file is too wide, and shows a token that would pass', async () => {
  const path = join(latchkey.folder, 'policies.json')
  writeFileSync(
    path,
    JSON.stringify([{ issuer: 'github', audience: 'llm', condition: 'subject.startsWith("repo:acme")' }]),
  )
  const { code, stdout } = await commands.run('policies', 'lint', '--file', path)
  expect(code).toBe(1)
  expect(stdout).toContain('blocking prefix-open: ')
  expect(stdout).toContain('This token would pass: {"sub":"repo:acme-evil/lab:pull_request"')
  expect(stdout).toEndWith('1 linted, 1 with findings, 1 too wide\n')
})

test('a dry run of an update exits 1 if the change would be refused, and names both tokens', async () => {
  await latchkey.admin('policies.create', {
    name: 'ci',
    issuer: 'github',
    key: 'target',
    audience: 'llm',
    subject: 'repo:acme/app:ref:refs/heads/main',
  })
  const change = ['policies', 'update', 'ci', '--no-subject', '--condition', 'claims.ref == "refs/heads/dev"']
  const { code, stdout } = await commands.run(...change, '--dry-run')
  expect(code).toBe(1)
  expect(stdout).toMatch(
    /The change widens the policy\. This token would pass: \{.*"sub":"repo:mallory\/lab:ref:refs\/heads\/dev"/,
  )
  expect(stdout).toMatch(/This token would no longer pass: \{.*"sub":"repo:acme\/app:ref:refs\/heads\/main"/)
  const same = await commands.run('policies', 'update', 'ci', '--max-lifetime', '300', '--dry-run')
  expect(same.code).toBe(0)
  expect(same.stdout).toContain('No difference found')
})

describe('wrong usage:', () => {
  test.each([
    ['nothing to lint', ['policies', 'lint'], 'Name one policy'],
    ['two things to lint', ['policies', 'lint', 'policy', '--all'], 'Name one policy'],
    [
      'an exception without a reason',
      ['policies', 'create', '--name', 'x', ...wide, '--allow', 'dead'],
      '--because TEXT',
    ],
    ['a reason without an exception', ['policies', 'create', '--name', 'x', ...wide, '--because', 'y'], '--allow RULE'],
  ])('%s', async (_, given, text) => {
    const { code, error } = await commands.failure(...given)
    expect(code).toBe(2)
    expect(error.message).toContain(text)
  })
})
