// `policies test` by command: with a server, and on a file without a database.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createCommandRunner } from '../support/command-runner.ts'
import { runCommand, temporaryFolder } from '../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'

let latchkey: PastedIssuer
let commands: ReturnType<typeof createCommandRunner>
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  commands = createCommandRunner(latchkey.folder)
})
afterAll(() => latchkey.stop())

const main = { name: 'main may', claims: { ref: 'main' }, expect: 'allow' }
const other = { name: 'others may not', claims: { ref: 'other' }, expect: 'condition_false' }
const fileWith = (value: unknown, folder = latchkey.folder) => {
  const path = join(folder, `${crypto.randomUUID()}.json`)
  writeFileSync(path, JSON.stringify(value))
  return path
}
const rules = ['--issuer', 'idp', '--key', 'target', '--audience', 'llm', '--condition', 'claims.ref == "main"']

test('--tests stores them, show lists them, test runs them, and --no-tests removes them', async () => {
  await commands.json('policies', 'create', '--name', 'ci', ...rules, '--tests', fileWith([main, other]))
  expect((await commands.run('policies', 'show', 'ci')).stdout).toContain(
    'main may (allow); others may not (condition_false)',
  )
  const { code, stdout } = await commands.run('policies', 'test', 'ci')
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: 'ci\n  ✓ main may: allow\n  ✓ others may not: condition_false\n\n2 tests, 0 failed\n',
  })
  expect(await commands.json('policies', 'test', '--all')).toMatchObject({ data: [{ policy_name: 'ci' }] })
  expect(await commands.json('policies', 'update', 'ci', '--no-tests')).toMatchObject({ tests: null })
})

test('a failing test exits 2 when the policy is saved', async () => {
  const tests = fileWith([{ ...other, expect: 'allow' }])
  const { code, error } = await commands.failure('policies', 'create', '--name', 'no', ...rules, '--tests', tests)
  expect({ code, message: error.message }).toEqual({
    code: 2,
    message: expect.stringContaining('"others may not": expected allow, got condition_false (claims.ref is "other"'),
  })
})

test('--file needs no database, and exits 1 with the parts of the condition if a test fails', async () => {
  const { path: folder, remove } = temporaryFolder()
  const draft = { name: 'ci', issuer_url: 'https://idp.example.com', audience: 'llm', condition: 'claims.ref == "x"' }
  const path = fileWith({ ...draft, tests: [main, other] }, folder)
  const { code, stdout } = await runCommand(['policies', 'test', '--file', path], { cwd: folder })
  remove()
  expect({ code, stdout }).toEqual({
    code: 1,
    stdout: `ci
  ✗ main may: expected allow, got condition_false
      claims.ref  →  "main"
      claims.ref == "x"  →  false
  ✓ others may not: condition_false

2 tests, 1 failed
`,
  })
})

test.each([[[]], [['ci', '--all']]])('test %p is refused: it must know which policies', async (words) => {
  const { code, error } = await commands.failure('policies', 'test', ...words)
  expect({ code, error }).toMatchObject({ code: 2, error: { code: 'usage' } })
})

test('--from-audit prints a test of an exchange and runs it, --save stores it, and backtest counts the exchange', async () => {
  const { id } = await commands.json('policies', 'create', '--name', 'audited', ...rules)
  const exchange = async (ref: string) => {
    const token = await latchkey.sign({ aud: 'llm', ref })
    const { headers } = await latchkey.exchange(token, { federation_policy_id: String(id) })
    return headers.get('x-request-id') ?? ''
  }
  const [allowed, refused] = [await exchange('main'), await exchange('other')]
  const made = { sub: 'workload-1', aud: 'llm', ref: 'other' }
  expect(await commands.json('policies', 'test', '--from-audit', refused, '--name', 'others may not')).toMatchObject({
    policy_name: 'audited',
    test: { name: 'others may not', claims: made, expect: 'condition_false' },
    result: { ok: true },
  })
  const { code, stdout } = await commands.run('policies', 'test', '--from-audit', allowed, '--save')
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('Stored with the policy audited') })
  expect(await commands.json('policies', 'show', 'audited')).toMatchObject({
    tests: [{ name: `exchange ${allowed}`, claims: { ...made, ref: 'main' }, expect: 'allow' }],
  })
  const edit = ['policies', 'backtest', 'audited', '--condition', 'claims.ref == "other"']
  const judged = await commands.run(...edit)
  expect(judged.code).toBe(1)
  expect(judged.stdout).toContain(`no longer accepted: 1, such as ${allowed} (workload-1, condition_false after)`)
  expect(judged.stdout).toContain(`newly accepted: 1, such as ${refused}`)
})
