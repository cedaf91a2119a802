// `latchkey policies backtest`: what an edit would have decided about past exchanges.
import type { Command } from 'commander'
import { judgedBy } from '../../src/admin/kinds/fields.ts'
import { policyFields } from '../../src/admin/kinds/policy.ts'
import type { OperationResponse } from '../../src/admin/operations.ts'
import { command } from './command-line.ts'
import { fieldInput, fieldOptions } from './field-options.ts'
import { inOrganization, operationCommand } from './operation-command.ts'
import { momentText, wholeNumber } from './option-values.ts'
import { moment, printable } from './render.ts'
import { archivedLines } from './reports.ts'

type Backtest = OperationResponse<'policies.backtest'>
type Example = NonNullable<Backtest['examples']['gained']>

const judgedFields = judgedBy('backtest', policyFields)

export function backtestCommand(): Command {
  const made = command(
    'backtest <policy>',
    'Judge past exchanges of the issuer by an edited policy, without saving it',
    [
      'policies backtest ci --condition "claims.ref == \'refs/heads/main\'"',
      'policies backtest ci --subject repo:acme/app:environment:production --no-condition --since 7d',
    ],
  )
    .option('--since <time>', 'only exchanges since this time, or 24h for the last 24 hours (default: 30d)', momentText)
    .option('--limit <rows>', 'maximum number of exchanges to judge, newest first (default: 100000)', wholeNumber)
  return operationCommand(
    inOrganization(fieldOptions(made, judgedFields, 'change')),
    'policies.backtest',
    ({ words, options }) => ({
      policy: words[0],
      organization: options.organization,
      ...fieldInput(judgedFields, options),
      since: options.since,
      limit: options.limit,
    }),
    drawBacktest,
    { isNegative: ({ lost }) => lost > 0 },
  )
}

function drawBacktest(found: Backtest): string {
  const { exchanges, accepted_before, accepted_after, gained, lost, not_judged, examples } = found
  const since = `${exchanges} exchanges of ${printable(found.issuer_url)} since ${moment(found.since)}`
  return [
    found.is_limited ? `The newest ${since}; there are more, see --limit` : since,
    `  accepted before: ${accepted_before}, after: ${accepted_after}`,
    `  newly accepted: ${gained}${exampleOf(examples.gained, 'before')}`,
    `  no longer accepted: ${lost}${exampleOf(examples.lost, 'after')}`,
    `  not judged: ${not_judged}${not_judged === 0 ? '' : ` (${found.not_judged_because.map(whyUnknown).join(', ')})`}`,
    ...archivedLines(found.archived),
  ].join('\n')
}

function exampleOf(example: Example | undefined, refusedWhen: 'before' | 'after'): string {
  if (example === undefined) return ''
  const { request_id, subject } = example
  return `, such as ${request_id} (${printable(subject)}, ${example[refusedWhen]} ${refusedWhen})`
}

const reasons = {
  nothing_recorded: 'no claims were recorded',
  claim_not_recorded: 'the condition reads claims that were not recorded',
  hashed: 'the condition cannot be judged on these hashes',
} as const

function whyUnknown({ because, claim, exchanges }: Backtest['not_judged_because'][number]): string {
  const why = claim === undefined ? reasons[because] : `claims.${printable(claim)} was not recorded`
  return `${why}: ${exchanges}`
}
