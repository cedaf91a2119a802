// `latchkey policies backtest`: what an edit would have decided about past exchanges.
import type { Command } from 'commander'
import type { OperationResponse } from '../../src/admin/operations.ts'
import { command } from './command-line.ts'
import { inOrganization, operationCommand } from './operation-command.ts'
import { momentText, removable, wholeNumber } from './option-values.ts'
import { moment, printable } from './render.ts'
import { archivedLines } from './reports.ts'

type Backtest = OperationResponse<'policies.backtest'>
type Example = NonNullable<Backtest['examples']['gained']>

export function backtestCommand(): Command {
  const made = command(
    'backtest <policy>',
    'Judge past exchanges of the issuer by an edited policy, without saving it',
    [
      'policies backtest ci --condition "claims.ref == \'refs/heads/main\'"',
      'policies backtest ci --subject repo:acme/app:environment:production --no-condition --since 7d',
    ],
  )
    .option('--subject <subject>', 'value that the sub claim must equal')
    .option('--condition <cel>', 'CEL condition on the token')
    .option('--audience <audience>', 'value that the aud claim must equal or contain')
    .option('--require-scope <scope>', 'value that the scopes claim must contain')
    .option('--require-token-type <type>', 'value that the token_type claim must equal')
    .option('--replay-protection', 'tokens must have a jti claim')
    .option('--no-subject', 'remove the subject')
    .option('--no-condition', 'remove the condition')
    .option('--no-require-scope', 'remove the scope check')
    .option('--no-require-token-type', 'remove the token type check')
    .option('--no-replay-protection', 'accept tokens without a jti claim')
    .option('--since <time>', 'only exchanges since this time, or 24h for the last 24 hours (default: 30d)', momentText)
    .option('--limit <rows>', 'maximum number of exchanges to judge, newest first (default: 100000)', wholeNumber)
  return operationCommand(
    inOrganization(made),
    'policies.backtest',
    ({ words, options }) => ({
      policy: words[0],
      organization: options.organization,
      subject: removable(options.subject),
      condition: removable(options.condition),
      audience: options.audience,
      required_scope: removable(options.requireScope),
      required_token_type: removable(options.requireTokenType),
      replay_protection: options.replayProtection,
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
