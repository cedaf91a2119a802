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

/** The tests of `--tests`; null if `--no-tests` removes them. */
export function testsIn({ tests }: Arguments['options']): unknown {
  if (tests === false) return null
  return typeof tests === 'string' ? readJsonFile(tests) : undefined
}

/** A file needs neither a server nor a database, so that it can be tested before it is committed. */
export function testsCommand(): Command {
  const made = command('test [policy]', 'Run the tests that are stored with policies', [
    'policies test ci',
    'policies test --all',
    'policies test --file policies.json',
  ])
    .option('--all', 'test all policies of the organization')
    .option('--file <file>', 'test policies from a JSON file, without a server; - for standard input')
  const shown = ['LATCHKEY_DATABASE_URL'] as const
  return withSettings(inOrganization(made), { shown }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const response = await runTests(given)
    print(given.options.json === true ? JSON.stringify(response, null, 2) : drawTested(response))
    if (response.data.some(({ tests }) => tests.some(({ ok }) => !ok))) process.exitCode = exitCodeFailed
  })
}

async function runTests({ words: [policy], options }: Arguments): Promise<{ data: TestedResponse[] }> {
  const { organization, all, file } = options
  if ([policy, all, file].filter((each) => each !== undefined).length !== 1)
    throw new Fault('usage', 'Name one policy, or give --all or --file; see: latchkey policies test --help')
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
