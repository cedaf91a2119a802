// `latchkey audit`: every exchange with its outcome and, if it was refused, the reason that the caller was not told.
import type { Command } from 'commander'
import { command, drawReport, operationCommand, reportInput, reportOptions, runAlone } from './command-line.ts'
import { moment } from './present.ts'

type Exchange = {
  id: number
  at: string
  request_id: string
  outcome: string
  reason: string | null
  detail: string | null
  policy_name: string | null
  policy_named: string | null
  issuer_url: string | null
  subject: string | null
  client_address: string | null
}

export function auditCommand(): Command {
  const made = command('audit', 'List exchanges, newest first, with outcome and reason', [
    'audit',
    'audit --outcome refused --since 1h',
    'audit --json --limit 1000',
  ]).option('--outcome <outcome>', 'issued or refused')
  return operationCommand(
    reportOptions(made),
    'audit.list',
    (given) => ({ ...reportInput(given), outcome: given.options.outcome }),
    ({ data }: { data: Exchange[] }, given) =>
      drawReport(
        data,
        [
          ['TIME (UTC)', (row) => moment(row.at)],
          ['OUTCOME', (row) => row.outcome],
          ['REASON', (row) => (row.detail === null ? row.reason : `${row.reason} (${row.detail})`)],
          ['POLICY', (row) => row.policy_name ?? row.policy_named],
          ['SUBJECT', (row) => row.subject],
          ['ISSUER', (row) => row.issuer_url],
          ['FROM', (row) => row.client_address],
          ['REQUEST ID', (row) => row.request_id],
        ],
        given,
      ),
  )
}

if (import.meta.main) await runAlone(auditCommand())
