// `latchkey policies lint`; prints what the linter finds in policies, and reads the exceptions of a command line.
import type { Command } from 'commander'
import type { OperationResponse } from '../../src/admin/operations.ts'
import { Fault } from '../../src/fault.ts'
import { type Arguments, command } from './command-line.ts'
import { readJsonFile } from './input-files.ts'
import { inOrganization, operationCommand } from './operation-command.ts'
import { printable } from './render.ts'

type LintResult = OperationResponse<'policies.lint'>['data'][number]
type Finding = LintResult['findings'][number]
type Difference = NonNullable<OperationResponse<'policies.update'>['difference']>

export function lintCommand(): Command {
  const made = command('lint [policy]', 'Find policies that a stranger could pass, each with an example', [
    'policies lint ci',
    'policies lint --all',
    'policies lint --file policies.json',
  ])
    .option('--all', 'lint all policies of the organization')
    .option('--file <file>', 'lint policies from a JSON file, which are not saved; - for standard input')
  return operationCommand(inOrganization(made), 'policies.lint', lintRequest, drawLinted, {
    isNegative: ({ data }) => data.some(({ findings }) => findings.some(isBlocked)),
  })
}

function lintRequest({ words: [policy], options: { organization, all, file } }: Arguments) {
  if ([policy, all, file].filter((each) => each !== undefined).length !== 1)
    throw new Fault('usage', 'Name one policy, or give --all or --file; see: latchkey policies lint --help')
  if (file === undefined) return { organization, policy }
  const drafts = readJsonFile(String(file))
  return { organization, drafts: Array.isArray(drafts) ? drafts : [drafts] }
}

/** Reports whether a finding refuses the policy. */
export function isBlocked({ level, allowed_because }: Finding): boolean {
  return level === 'blocking' && allowed_because === undefined
}

/** The exceptions of `--allow` and `--because`; null if `--no-allow` removes them. */
export function exceptionsIn({ allow, because }: Arguments['options']): object[] | null | undefined {
  if (allow === false) return null
  if (!Array.isArray(allow)) {
    if (because !== undefined)
      throw new Fault('usage', '--because needs --allow RULE: it is the reason for an exception')
    return undefined
  }
  if (because === undefined)
    throw new Fault('usage', '--allow needs --because TEXT: the next reviewer reads the reason')
  return allow.map((rule: unknown) => ({ rule, because }))
}

/** Lines that follow a policy: nothing, or an empty line and each finding. */
export function drawFindings(findings: readonly Finding[]): string[] {
  return findings.length === 0 ? [] : ['', 'The linter found:', ...findings.flatMap(drawFinding)]
}

/** What a change would do, for a dry run. */
export function drawDifference(difference: Difference | undefined): string[] {
  if (difference === undefined) return []
  return ['', ...describeDifference(difference), 'Run this without --dry-run to save the change.']
}

/** A token that would pass, one that would no longer pass, or that neither was found. */
export function describeDifference({ gains, loses }: Difference): string[] {
  const lines = [
    ...(gains === undefined ? [] : [`The change widens the policy. This token would pass: ${shownOf(gains)}`]),
    ...(loses === undefined ? [] : [`This token would no longer pass: ${shownOf(loses)}`]),
  ]
  return lines.length === 0 ? ['No difference found: no token that only one of both policies accepts'] : lines
}

const shownOf = (claims: object) => printable(JSON.stringify(claims))

/** Each policy with its findings, and the sum. */
export function drawLinted({ data }: { data: readonly LintResult[] }): string {
  const found = data.filter(({ findings }) => findings.length > 0)
  const blocking = data.filter(({ findings }) => findings.some(isBlocked)).length
  const policies = found.flatMap(({ policy_name, policy_id, issuer_url, findings }) => [
    `${printable(policy_name ?? policy_id ?? 'draft')} (${printable(issuer_url)})`,
    ...findings.flatMap(drawFinding),
    '',
  ])
  const sum = `${data.length} linted, ${found.length} with findings, ${blocking} too wide`
  return [...policies, sum].join('\n')
}

export function drawFinding({ rule, level, message, fix, detail, example, allowed_because }: Finding): string[] {
  const about = detail === undefined ? '' : ` (${printable(detail)})`
  return [
    `  ${level} ${rule}${about}: ${message}`,
    ...(allowed_because === undefined ? [`    ${fix}`] : [`    Allowed because: ${printable(allowed_because)}`]),
    ...(example === undefined || level === 'note' ? [] : [`    This token would pass: ${shownOf(example)}`]),
  ]
}
