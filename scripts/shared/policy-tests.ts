// `latchkey policies test`, and the tests that other commands read from a file.
import type { Command } from 'commander'
import type { TestedResponse } from '../../src/admin/policies/policy-tests.ts'
import { Fault } from '../../src/fault.ts'
import { callOperation } from './call-operation.ts'
import { type Arguments, command, dependencies, givenTo, print, readConfig, withSettings } from './command-line.ts'
import { readJsonFile } from './input-files.ts'
import { inOrganization } from './operation-command.ts'
import { exitCodeFailed } from './program.ts'
import { printable } from './render.ts'

/** A file needs neither a server nor a database, so that it can be tested before it is committed. */
export function testsCommand(): Command {
  const made = command('test [policy]', 'Run the tests that are stored with policies', [
    'policies test ci',
    'policies test --all',
    'policies test --file policies.json',
    'policies test --from-audit 01a1feb6-0bde-7947-b3a3-0ae6b3f500f6 --save',
  ])
    .option('--all', 'test all policies of the organization')
    .option('--file <file>', 'test policies from a JSON file, without a server; - for standard input')
    .option('--from-audit <request-id>', 'make a test of an exchange, for the policy that decided it, and run it')
    .option('--save', 'store the test that --from-audit makes with the policy')
    .option('--name <name>', 'name of the test that --from-audit makes')
  const shown = ['LATCHKEY_DATABASE_URL'] as const
  return withSettings(inOrganization(made), { shown }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    if (given.options.fromAudit !== undefined) return testExchange(given)
    const response = await runTests(given)
    print(given.options.json === true ? JSON.stringify(response, null, 2) : drawTested(response))
    if (response.data.some(({ tests }) => tests.some(({ ok }) => !ok))) process.exitCode = exitCodeFailed
  })
}

/** Prints the test. With `--save`, it is stored unless the policy was changed meanwhile. */
async function testExchange({ words: [policy], options }: Arguments): Promise<void> {
  const { organization, all, file, fromAudit, name, save } = options
  if ([policy, all, file].some((each) => each !== undefined))
    throw new Fault(
      'usage',
      '--from-audit takes the policy of the exchange: name no policy, and neither --all nor --file',
    )
  const config = readConfig(options)
  const asked = { organization, request_id: fromAudit, name }
  const made = await callOperation(config, dependencies, 'policies.audited_test', asked)
  const { policy_id, policy_name, test, result } = made
  if (save === true) {
    const saved = await callOperation(config, dependencies, 'policies.show', { organization, policy: policy_id })
    const change = { tests: [...(saved.tests ?? []), test], if_match: `"${saved.updated_at}"` }
    await callOperation(config, dependencies, 'policies.update', { organization, policy: policy_id, ...change })
  }
  const isSaved = save === true ? ['', `Stored with the policy ${printable(policy_name)}`] : []
  const drawn = [JSON.stringify(test, null, 2), '', printable(policy_name), ...drawTest(result), ...isSaved].join('\n')
  print(options.json === true ? JSON.stringify(made, null, 2) : drawn)
  if (!result.ok) process.exitCode = exitCodeFailed
}

async function runTests({ words: [policy], options }: Arguments): Promise<{ data: TestedResponse[] }> {
  const { organization, all, file, save, name } = options
  if (save !== undefined || name !== undefined) throw new Fault('usage', '--save and --name go with --from-audit')
  if ([policy, all, file].filter((each) => each !== undefined).length !== 1)
    throw new Fault(
      'usage',
      'Name one policy, or give --all, --file or --from-audit; see: latchkey policies test --help',
    )
  if (file === undefined) {
    return callOperation(readConfig(options), dependencies, 'policies.test', { organization, policy })
  }
  const { testDrafts } = await import('../../src/admin/policies/policy-tests.ts')
  return testDrafts(readJsonFile(String(file)), dependencies.now())
}

function drawTested({ data }: { data: readonly TestedResponse[] }): string {
  const tests = data.flatMap((policy) => policy.tests)
  const failed = tests.filter(({ ok }) => !ok).length
  const policies = data.flatMap(({ policy_name, policy_id, tests: own }) => [
    `${printable(policy_name ?? policy_id ?? 'draft')}${own.length === 0 ? ': no tests' : ''}`,
    ...own.flatMap(drawTest),
  ])
  return [...policies, '', `${tests.length} tests, ${failed} failed`].join('\n')
}

function drawTest({ name, ok, expected, got, detail, condition = [] }: TestedResponse['tests'][number]): string[] {
  if (ok) return [`  ✓ ${printable(name)}: ${got}`]
  return [
    `  ✗ ${printable(name)}: expected ${expected}, got ${got}`,
    ...(detail === undefined || condition.length > 0 ? [] : [`      ${printable(detail)}`]),
    ...condition.map(
      ({ source, value, error }) =>
        `      ${printable(source)}  →  ${error === undefined ? printable(value) : `error: ${printable(error)}`}`,
    ),
  ]
}
