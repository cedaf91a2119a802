// `latchkey usage`: what each key has used, or the single requests.
import type { Command } from 'commander'
import {
  type Arguments,
  command,
  drawReport,
  operationCommand,
  reportInput,
  reportOptions,
  runAlone,
} from './command-line.ts'
import { moment, table } from './present.ts'

type KeyTotals = {
  key_name: string
  key_deleted: boolean
  requests: number
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  last_used_at: string
}
type Request = {
  id: number
  at: string
  key_name: string
  model: string | null
  status: number
  completed: boolean
  total_tokens: number | null
  policy_name: string | null
  issuer_url: string | null
  subject: string | null
}

export function usageCommand(): Command {
  const made = command('usage', 'Show what each key has used', [
    'usage',
    'usage --since 24h --json',
    'usage --requests --key my-app',
  ])
    .option('--key <key>', 'only this key, by name, id or hash')
    .option('--requests', 'list the single requests, newest first, with policy, issuer and subject')
  return operationCommand(
    reportOptions(made),
    ({ options }) => (options.requests ? 'usage.requests' : 'usage.keys'),
    (given) => ({ ...reportInput(given), key: given.options.key }),
    ({ data }: { data: KeyTotals[] | Request[] }, { options }) =>
      options.requests ? drawRequests(data as Request[], { options, words: [] }) : drawTotals(data as KeyTotals[]),
  )
}

function drawTotals(rows: KeyTotals[]): string {
  return table(
    rows,
    [
      ['KEY', (row) => `${row.key_name}${row.key_deleted ? ' (deleted)' : ''}`],
      ['REQUESTS', (row) => row.requests],
      ['PROMPT TOKENS', (row) => row.prompt_tokens],
      ['COMPLETION TOKENS', (row) => row.completion_tokens],
      ['TOTAL TOKENS', (row) => row.total_tokens],
      ['LAST USED (UTC)', (row) => moment(row.last_used_at)],
    ],
    'No usage yet',
  )
}

function drawRequests(rows: Request[], given: Arguments): string {
  return drawReport(
    rows,
    [
      ['TIME (UTC)', (row) => moment(row.at)],
      ['KEY', (row) => row.key_name],
      ['MODEL', (row) => row.model],
      ['STATUS', (row) => (row.completed ? row.status : `${row.status} broken off`)],
      ['TOKENS', (row) => row.total_tokens],
      ['POLICY', (row) => row.policy_name],
      ['SUBJECT', (row) => row.subject],
      ['ISSUER', (row) => row.issuer_url],
    ],
    given,
  )
}

if (import.meta.main) await runAlone(usageCommand())
