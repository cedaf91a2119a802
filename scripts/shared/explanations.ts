// `latchkey policies check`, and its result: one line per policy, and every step of the named or nearest policy.
import type { Command } from 'commander'
import type { OperationResponse } from '../../src/admin/operations.ts'
import { stepNames } from '../../src/federation/subject-token/refusal.ts'
import { command } from './command-line.ts'
import { readTextFile } from './input-files.ts'
import { inOrganization, operationCommand } from './operation-command.ts'
import { printable } from './render.ts'

export type Explanation = OperationResponse<'policies.check'>['data'][number]
type ExplainedStep = Explanation['steps'][number]

export function checkCommand(): Command {
  const made = command('check', 'Explain why a token is accepted or refused, without exchanging it', [
    'policies check --token-file jwt.txt --policy ci',
    'policies check --token-file - < jwt.txt',
  ])
    .requiredOption('--token-file <file>', 'file that contains the token; - for standard input')
    .option('--policy <policy>', 'show every step under this policy, by name or id (default: the nearest policies)')
  return operationCommand(
    inOrganization(made),
    'policies.check',
    ({ options }) => ({
      organization: options.organization,
      policy: options.policy,
      token: readTextFile(String(options.tokenFile)).trim(),
    }),
    ({ data }) => drawExplanations(data),
    {
      moreShown: ['LATCHKEY_INSECURE_ISSUERS'],
      isNegative: ({ data }) => !data.some(({ accepted }) => accepted),
    },
  )
}

/**
 * Draws a single policy with all its steps. Of several, nearest first, only the first has steps, and only if no policy
 * accepts the token.
 */
export function drawExplanations(explanations: Explanation[]): string {
  const [nearest, ...others] = explanations
  if (nearest === undefined) return 'No policies to check against'
  if (others.length === 0) return drawExplanation(nearest)
  const lines = explanations.map(drawSummary)
  if (explanations.some(({ accepted }) => accepted)) return lines.join('\n')
  return [...lines, '', drawExplanation(nearest), '', 'To see the steps of another policy: --policy NAME'].join('\n')
}

function drawSummary({ policy_id, policy_name, accepted, steps }: Explanation): string {
  const title = `${accepted ? '✓' : '✗'} ${printable(policy_name)} (${policy_id})`
  const failed = steps.find(({ ok }) => !ok)
  return failed === undefined
    ? `${title} accepts the token`
    : `${title} refuses at ${failed.step}: ${drawWhy(failed).split('\n')[0]}`
}

function drawExplanation({ policy_id, policy_name, accepted, steps, condition }: Explanation): string {
  const lines = stepNames.flatMap((name) => {
    const found = steps.find(({ step }) => step === name)
    if (found === undefined) return isAlwaysTaken(name) ? [`  – ${name.padEnd(11)} skipped`] : []
    return [`  ${found.ok ? '✓' : '✗'} ${name.padEnd(11)} ${found.ok ? '' : drawWhy(found)}`.trimEnd()]
  })
  const parts = (condition ?? []).map(({ source, value, error }) => {
    return `      ${printable(source)}  →  ${error === undefined ? printable(value) : `error: ${printable(error)}`}`
  })
  const verdict = accepted ? 'accepts the token' : 'refuses the token'
  return [`${printable(policy_name)} (${policy_id}) ${verdict}`, ...lines, ...parts].join('\n')
}

/**
 * Reports whether a missing step means that an earlier one failed. The other steps are not part of a check or depend on
 * the policy.
 */
function isAlwaysTaken(step: string): boolean {
  return !['form', 'replay', 'minting'].includes(step)
}

function drawWhy({ reason, detail }: ExplainedStep): string {
  return detail === undefined ? `${reason}` : `${reason}: ${detail.split('\n').map(printable).join('\n')}`
}
