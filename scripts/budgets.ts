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
import { dollarsAlike, managedBy, moment, record } from './shared/render.ts'
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
  return [sentence, ...withoutCostNote(shown), '', table(shown.data, simulatedColumns, '')].join('\n')
}

/** What a budget in dollars does not count, and what to do. */
function withoutCostNote({ requests_without_cost: requests = 0 }: { requests_without_cost?: number }): string[] {
  if (requests === 0) return []
  const has = requests === 1 ? 'has an unknown cost and counts' : 'have an unknown cost and count'
  return [
    `${amountText(requests, 'requests')} ${has} as free. See the models: latchkey usage --by model`,
    'Set their prices: latchkey prices set MODEL --prompt DOLLARS --completion DOLLARS',
  ]
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
    ({ data }, { options }) => drawList(data, isNarrowed(options, ['contains']) ? nothingMatches : empty),
  )
}

const empty = 'No budgets. To create one: latchkey budgets create --name everything --windows month=500usd'

type ListedBudget = OperationResponse<'budgets.list'>['data'][number]

function drawList(rows: ListedBudget[], whenEmpty: string): string {
  const limits = rows.flatMap(({ windows }) => windows.flatMap(({ usd }) => usd ?? []))
  const limitMoney = dollarsAlike([], limits)
  const spentMoney = spentMoneyOf(rows.flatMap(({ spent, values: [first] = [] }) => spent ?? first?.spent ?? []))
  const requests = rows.reduce((sum, { requests_without_cost: own = 0 }) => sum + own, 0)
  const columns: Column<ListedBudget>[] = [
    ['NAME', (row) => row.name],
    ['WINDOWS', (row) => windowsText(row.windows, limitMoney)],
    ['AT ONCE', (row) => row.concurrent_requests],
    ['EACH', (row) => row.each],
    ['MODE', (row) => (row.enabled ? row.mode : 'disabled')],
    ['SPENT', (row) => (row.spent === undefined ? null : spentText(row.spent, spentMoney))],
    [
      'RUNS OUT NEXT',
      ({ values: [first] = [] }) =>
        first === undefined
          ? null
          : `${first.name ?? (first.value || '(none)')}: ${spentText(first.spent, spentMoney)}`,
    ],
    ['VALUES', (row) => row.value_count],
    ...costUnknownColumn<ListedBudget>(requests > 0, (row) => row.requests_without_cost),
    ['MANAGED BY', (row) => row.managed_by],
  ]
  return [table(rows, columns, whenEmpty), ...withoutCostNote({ requests_without_cost: requests })].join('\n')
}

/** Only where there is something in it. */
function costUnknownColumn<Row>(isShown: boolean, requests: (row: Row) => number | undefined): Column<Row>[] {
  return isShown ? [['COST UNKNOWN', (row) => requests(row) || null]] : []
}

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
    ...(spent === undefined ? {} : { spent: spentText(spent, spentMoneyOf(spent)) }),
    ...managedBy(row),
  })
  const note = withoutCostNote(row)
  if (values === undefined) return [fields, ...(note.length === 0 ? [] : ['', ...note])].join('\n')
  const more = count > values.length ? [`and ${count - values.length} more`] : []
  return [fields, '', drawValues(values), ...more, ...note].join('\n')
}

function drawValues(values: Value[]): string {
  const money = spentMoneyOf(values.flatMap(({ spent }) => spent))
  const requestsOf = ({ spent }: Value) => Math.max(0, ...spent.map(({ requests_without_cost: own = 0 }) => own))
  const columns: Column<Value>[] = [
    ['VALUE', ({ value, name }) => name ?? (value || '(none)')],
    ['SPENT', ({ spent }) => spentText(spent, money)],
    ...costUnknownColumn(
      values.some((value) => requestsOf(value) > 0),
      requestsOf,
    ),
    ['RESETS (UTC)', ({ spent }) => moment(spent.find(({ resets_at }) => resets_at !== null)?.resets_at ?? null)],
  ]
  return table(values, columns, 'Nothing was used in the current periods')
}

/** One format for a column. */
function spentMoneyOf(spent: readonly SpentAmount[]) {
  const inDollars = spent.filter(({ unit }) => unit === 'usd')
  return dollarsAlike(
    inDollars.map((each) => each.spent),
    inDollars.map(({ limit }) => limit),
  )
}

function spentText(spent: readonly SpentAmount[], money: (usd: number) => string): string {
  const shown = (unit: SpentAmount['unit'], value: number) => (unit === 'usd' ? money(value) : String(value))
  return spent
    .map(
      ({ per, unit, limit, spent: used }) => `${shown(unit, used)} of ${amountText(shown(unit, limit), unit)} (${per})`,
    )
    .join('; ')
}

if (import.meta.main) await runAlone(budgetsCommand())
