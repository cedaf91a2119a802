// `latchkey budgets`: what may be spent, by whom and in which time.
import type { Command } from 'commander'
import { budgetFields } from '../src/admin/kinds/budget.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { amountText } from '../src/values/amount-text.ts'
import { type Amounts, amountsFrom, amountsText, windowsText } from './shared/budget-windows.ts'
import { command, group, isNarrowed, nothingMatches, runAlone } from './shared/command-line.ts'
import { fieldInput, fieldLines, fieldOptions } from './shared/field-options.ts'
import { commandOnOne, inOrganization, operationCommand } from './shared/operation-command.ts'
import { futureText, momentText, wholeNumber } from './shared/option-values.ts'
import { dollars, managedBy, moment, record } from './shared/render.ts'
import { type Column, table } from './shared/table.ts'

type Budget = OperationResponse<'budgets.show'>
type SpentAmount = NonNullable<Budget['spent']>[number]
type Value = NonNullable<Budget['values']>[number]

export function budgetsCommand(): Command {
  return group('budgets', 'Budgets: what keys, policies, teams or single workloads may spend', [
    createCommand(),
    listCommand(),
    commandOnOne('budget', 'show', 'Show a budget and what was spent of it', 'budgets.show', show),
    updateCommand(),
    topUpCommand(),
    simulateCommand(),
    switchCommand('disable', 'Keep a budget, but refuse nothing for it', false),
    switchCommand('enable', 'Put a disabled budget in force again', true),
    commandOnOne('budget', 'delete', 'Delete a budget', 'budgets.delete', ({ id }) => `Deleted ${id}`),
  ])
}

function createCommand(): Command {
  const made = command('create', 'Create a budget; it counts what its current periods have already used', [
    'budgets create --name everything --windows month=500usd',
    'budgets create --name repositories --each attribution --windows month=20usd --overrides 456789:month=50usd',
    'budgets create --name research --applies-to scope.json --windows week=1000000tokens --mode warn',
  ])
  return operationCommand(
    inOrganization(fieldOptions(made, budgetFields, 'create')),
    'budgets.create',
    ({ options }) => ({ ...fieldInput(budgetFields, options), organization: options.organization }),
    show,
  )
}

function updateCommand(): Command {
  const made = command('update <budget>', 'Change a budget; takes effect at the next request', [
    'budgets update repositories --windows month=30usd',
    'budgets update research --mode block',
  ])
  return operationCommand(
    inOrganization(fieldOptions(made, budgetFields, 'change')),
    'budgets.update',
    ({ words, options }) => ({
      ...fieldInput(budgetFields, options),
      budget: words[0],
      organization: options.organization,
    }),
    show,
  )
}

function switchCommand(verb: string, description: string, enabled: boolean): Command {
  const made = command(`${verb} <budget>`, description, [`budgets ${verb} research`])
  return operationCommand(
    inOrganization(made),
    'budgets.update',
    ({ words, options }) => ({ budget: words[0], enabled, organization: options.organization }),
    show,
  )
}

function topUpCommand(): Command {
  const made = command('top-up <budget>', 'Add to what a budget allows until a time; its windows stay', [
    'budgets top-up repositories --value 456789 --add 10usd --ends-at 7d --because "release week"',
  ])
    .requiredOption('--add <amounts>', 'what to add, such as 10usd or 5usd,1000requests', amountsFrom)
    .option('--value <value>', 'only for this value of --each')
    .requiredOption('--ends-at <time>', 'when it ends: a time, or 7d for 7 days from now', futureText)
    .requiredOption('--because <reason>', 'why, for the record')
  return operationCommand(
    inOrganization(made),
    'budgets.top_up',
    ({ words, options: { add, value, endsAt: until, because, organization } }) => ({
      ...{ budget: words[0], ...(add as Amounts), value, until, because, organization },
    }),
    show,
  )
}

function simulateCommand(): Command {
  const made = command('simulate [budget]', 'Show what a budget would have refused of past usage; changes nothing', [
    'budgets simulate --each attribution --windows month=20usd',
    'budgets simulate repositories --windows month=30usd',
  ])
  const options = fieldOptions(made, budgetFields, 'change').option(
    '--since <time>',
    'usage since this time: a time, or 30d for 30 days ago (default: 30d)',
    momentText,
  )
  return operationCommand(
    inOrganization(options),
    'budgets.simulate',
    ({ words, options: { since, organization, ...fields } }) => ({
      ...fieldInput(budgetFields, fields),
      ...(words[0] === undefined ? {} : { budget: words[0] }),
      ...{ since, organization },
    }),
    drawSimulation,
  )
}

function drawSimulation(shown: OperationResponse<'budgets.simulate'>): string {
  const { since, requests, refused, first_refused_at: first, values_refused: refusedValues, value_count: all } = shown
  const whose = all > 1 ? `, of ${refusedValues} of ${all} values` : ''
  const when = first === null ? '' : `, first at ${moment(first)} UTC`
  const about = shown.estimated ? 'about ' : ''
  const sentence = `Since ${moment(since)} UTC, ${about}${refused} of ${amountText(requests, 'requests')} would have been refused${whose}${when}.`
  if (shown.data.length === 0) return 'No usage that this budget counts.'
  return [sentence, '', table(shown.data, simulatedColumns, '')].join('\n')
}

const simulatedColumns: Column<OperationResponse<'budgets.simulate'>['data'][number]>[] = [
  ['VALUE', ({ value, name }) => name ?? (value || '(none)')],
  ['REQUESTS', ({ requests }) => requests],
  ['REFUSED', ({ refused }) => refused],
  ['FIRST (UTC)', ({ first_refused_at }) => moment(first_refused_at)],
  ['MOST USED', ({ share }) => `${Math.round(share * 100)} %`],
]

function listCommand(): Command {
  const made = command('list', 'List the budgets with what was spent; of a budget with --each, what runs out next', [
    'budgets list',
    'budgets list --contains research',
  ])
    .option('--contains <text>', 'only names that contain this text, in any case')
    .option('--limit <rows>', 'maximum number of rows', wholeNumber)
  return operationCommand(
    inOrganization(made),
    'budgets.list',
    ({ options: { contains, limit, organization } }) => ({ contains, limit, organization }),
    ({ data }, { options }) => table(data, columns, isNarrowed(options, ['contains']) ? nothingMatches : empty),
  )
}

const empty = 'No budgets. To create one: latchkey budgets create --name everything --windows month=500usd'

const columns: Column<OperationResponse<'budgets.list'>['data'][number]>[] = [
  ['NAME', (row) => row.name],
  ['WINDOWS', (row) => windowsText(row.windows)],
  ['AT ONCE', (row) => row.concurrent_requests],
  ['EACH', (row) => row.each],
  ['MODE', (row) => (row.enabled ? row.mode : 'disabled')],
  ['SPENT', (row) => (row.spent === undefined ? null : spentText(row.spent))],
  [
    'RUNS OUT NEXT',
    ({ values: [first] = [] }) =>
      first === undefined ? null : `${first.name ?? (first.value || '(none)')}: ${spentText(first.spent)}`,
  ],
  ['VALUES', (row) => row.value_count],
  ['MANAGED BY', (row) => row.managed_by],
]

function show(row: Budget): string {
  const { applies_to: scope, windows, overrides, top_ups: topUps, spent, values, value_count: count = 0 } = row
  const fields = record({
    ...fieldLines(budgetFields, row),
    'applies to': scope === null ? 'everything' : JSON.stringify(scope),
    windows: windowsText(windows) || null,
    ...Object.fromEntries(
      Object.entries(overrides ?? {}).map(([value, own]) => [`override ${value}`, windowsText(own)]),
    ),
    ...Object.fromEntries(
      topUps.map(({ until, because, value, ...amounts }, index) => [
        `top-up ${index + 1}`,
        `${amountsText(amounts)} until ${moment(until)}${value === undefined ? '' : ` for ${value}`}: ${because}`,
      ]),
    ),
    ...(spent === undefined ? {} : { spent: spentText(spent) }),
    ...managedBy(row),
  })
  if (values === undefined) return fields
  const more = count > values.length ? [`and ${count - values.length} more`] : []
  return [fields, '', table(values, valueColumns, 'Nothing was used in the current periods'), ...more].join('\n')
}

const valueColumns: Column<Value>[] = [
  ['VALUE', ({ value, name }) => name ?? (value || '(none)')],
  ['SPENT', ({ spent }) => spentText(spent)],
  ['RESETS (UTC)', ({ spent }) => moment(spent.find(({ resets_at }) => resets_at !== null)?.resets_at ?? null)],
]

function spentText(spent: readonly SpentAmount[]): string {
  const shown = (unit: SpentAmount['unit'], value: number) => (unit === 'usd' ? dollars(value) : String(value))
  return spent
    .map(
      ({ per, unit, limit, spent: used }) => `${shown(unit, used)} of ${amountText(shown(unit, limit), unit)} (${per})`,
    )
    .join('; ')
}

if (import.meta.main) await runAlone(budgetsCommand())
