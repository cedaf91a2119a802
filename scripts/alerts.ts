// `latchkey alerts`: what was alerted, and whether it arrived.
import { type Command, Option } from 'commander'
import { alertTypes } from '../db/schema/alert-schema.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { type AmountUnit, amountText } from '../src/values/amount-text.ts'
import { command, runAlone } from './shared/command-line.ts'
import { inOrganization, operationCommand } from './shared/operation-command.ts'
import { momentText, wholeNumber } from './shared/option-values.ts'
import { moment } from './shared/render.ts'
import { whenEmpty } from './shared/reports.ts'
import { table } from './shared/table.ts'

type Alert = OperationResponse<'alerts.list'>['data'][number]

export function alertsCommand(): Command {
  const made = command('alerts', 'List the alerts, newest first, and how far their deliveries are', [
    'alerts',
    'alerts --type budget.reached --since 7d',
    'alerts --json --limit 1000',
  ])
    .addOption(new Option('--type <type>', 'only alerts of this type').choices(alertTypes))
    .option('--since <time>', 'only since this time, such as 24h for the last 24 hours', momentText)
    .option('--until <time>', 'only before this time', momentText)
    .option('--limit <rows>', 'maximum number of rows (default: 50)', wholeNumber)
  return operationCommand(
    inOrganization(made),
    'alerts.list',
    ({ options: { type, since, until, limit, organization } }) => ({ type, since, until, limit, organization }),
    ({ data }, given) =>
      table(
        data,
        [
          ['TIME (UTC)', (row) => moment(row.at)],
          ['TYPE', (row) => row.type],
          ['WHAT', whatOf],
          ['DELIVERIES', deliveriesOf],
          ['ID', (row) => row.id],
        ],
        whenEmpty(given, 'No alerts yet. Budgets alert at 80 and 100 percent: see latchkey help alerts'),
      ),
  )
}

type BudgetData = { budget: { name: string }; value?: string | null; each?: string; per: string; percent: number } & {
  unit: AmountUnit
  limit: number
  spent: number
}

function whatOf({ type, data }: Alert): string {
  if (type !== 'budget.reached') return String((data as { message?: unknown }).message ?? '')
  const { budget, each, value, per, percent, unit, limit, spent } = data as BudgetData
  const whose = each === undefined ? '' : `, ${value ?? 'erased'}`
  return `${budget.name}${whose}: ${percent} % of ${amountText(limit, unit)} (${per}), ${amountText(spent, unit)} spent`
}

function deliveriesOf({ deliveries: { delivered, waiting, given_up: givenUp } }: Alert): string | null {
  const parts = [
    [delivered, 'delivered'],
    [waiting, 'waiting'],
    [givenUp, 'given up'],
  ] as const
  const text = parts.flatMap(([number, what]) => (number === 0 ? [] : [`${number} ${what}`])).join(', ')
  return text === '' ? null : text
}

if (import.meta.main) await runAlone(alertsCommand())
