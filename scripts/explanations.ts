// Draws what `policies check` found: a line a policy, and every step of the one that was asked for or that accepts nearly.
import type { OperationResponse } from '../src/admin/operations.ts'
import { stepNames } from '../src/federation/subject-token/refusal.ts'
import { printable } from './shared/render.ts'

export type Explanation = OperationResponse<'policies.check'>['data'][number]
type ExplainedStep = Explanation['steps'][number]

/** A single policy with all its steps; of several, nearest first, those of the first alone, and only where none accepts. */
export function drawExplanations(explanations: Explanation[]): string {
  const [nearest, ...others] = explanations
  if (nearest === undefined) return 'No policies to check against'
  if (others.length === 0) return drawExplanation(nearest)
  const lines = explanations.map(drawSummary)
  if (explanations.some(({ accepted }) => accepted)) return lines.join('\n')
  return [...lines, '', drawExplanation(nearest), '', 'For the steps of another: --policy NAME'].join('\n')
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
    if (found === undefined) return isAlwaysTaken(name) ? [`  – ${name.padEnd(10)} skipped`] : []
    return [`  ${found.ok ? '✓' : '✗'} ${name.padEnd(10)} ${found.ok ? '' : drawWhy(found)}`.trimEnd()]
  })
  const parts = (condition ?? []).map(({ source, value, error }) => {
    return `      ${printable(source)}  →  ${error === undefined ? printable(value) : `error: ${printable(error)}`}`
  })
  const verdict = accepted ? 'accepts the token' : 'refuses the token'
  return [`${printable(policy_name)} (${policy_id}) ${verdict}`, ...lines, ...parts].join('\n')
}

/** A step that is missing could not be taken, since one before it failed, unless it is none of a check or depends on the policy. */
function isAlwaysTaken(step: string): boolean {
  return !['form', 'replay', 'minting'].includes(step)
}

function drawWhy({ reason, detail }: ExplainedStep): string {
  return detail === undefined ? `${reason}` : `${reason}: ${detail.split('\n').map(printable).join('\n')}`
}
