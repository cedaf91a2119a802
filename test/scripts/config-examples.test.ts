// Every example of `config example` plans on a fresh database: nothing is found in it, its tests pass, and it fits the schema.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import Ajv2020 from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import { examples, titleOf } from '../../scripts/shared/config-examples.ts'
import { describeDocument } from '../../src/admin/config/schema.ts'
import { issuerKinds } from '../../src/federation/lint/issuer-kinds.ts'
import { createCommandRunner } from '../support/command-runner.ts'
import { startTestServer, type TestServer } from '../support/latchkey.ts'

let latchkey: TestServer
beforeAll(async () => {
  latchkey = await startTestServer()
})
afterAll(() => latchkey.stop())

type Policy = { name: string; issuer: string; tests: { expect: string }[]; allowed_models?: string[] }
type Document = { policies: Policy[] }
type Plan = { counts: object; findings: { findings: { level: string }[] }[]; failed_tests: object[] }
const fits = new Ajv2020({ strict: false, validateFormats: false }).compile(describeDocument() as object)

test.each([...examples])('%s', async (_name, text) => {
  const document = parse(text) as Document
  expect([fits(document), fits.errors]).toEqual([true, null])
  const plan = await latchkey.admin<Plan>('config.plan', { document })
  expect(plan.counts).toMatchObject({ create: 2 + document.policies.length })
  // A note is advice on what the platform does, not on the example.
  const found = plan.findings.flatMap(({ findings }) => findings)
  expect(found.filter(({ level }) => level !== 'note')).toEqual([])
  expect(plan.failed_tests).toEqual([])
  for (const { tests } of document.policies) {
    expect(tests.filter(({ expect }) => expect === 'allow').length).toBeGreaterThan(0)
    expect(tests.filter(({ expect }) => expect !== 'allow').length).toBeGreaterThan(0)
  }
  expect(document.policies.flatMap(({ allowed_models }) => allowed_models ?? []).length).toBeGreaterThan(0)
})

/** Known so that their policies are judged. `gitlab-com` and `circleci-root` are further issuers of kinds that have one. */
const withoutExample = [
  ...['circleci-root', 'vercel', 'pulumi', 'pulumi-ids', 'codefresh', 'depot', 'modal', 'codeberg', 'humanitec'],
  ...['namespace', 'sigstore', 'cognito', 'public-service', 'gitlab-com'],
]

test('every issuer kind of the linter has an example, or needs none', () => {
  const missing = issuerKinds.map(({ id }) => id).filter((id) => !examples.has(id))
  expect(missing.toSorted()).toEqual(withoutExample.toSorted())
})

test('the list names each example, and an unknown one is refused with the names', async () => {
  const commands = createCommandRunner(latchkey.folder)
  const { stdout } = await commands.run('config', 'example')
  expect(stdout.trimEnd().split('\n').length).toBe(examples.size)
  expect(stdout).toContain(`github      ${titleOf(examples.get('github') ?? '')}`)
  expect((await commands.run('config', 'example', 'gitlab')).stdout).toBe(examples.get('gitlab') ?? '')
  expect((await commands.failure('config', 'example', 'svn')).error.message).toContain('use github, gitlab, kubernetes')
})
