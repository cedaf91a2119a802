// Budgets: the list with what was spent and what runs out next, and one budget with what each value spent, top-ups and edits.
/** @import { Budget } from '../../admin/transport/response-types.ts' */
/** @import { Page, View } from '../types.ts' */
import {
  meters,
  refusedNote,
  spentMoney,
  windowsMoney,
  windowsText,
  withoutCostIn,
  withoutCostNote,
} from './budget-amounts.js'
import { budgetForm } from './budget-form.js'
import { topUp } from './budget-top-up.js'
import { changeList } from './changes.js'
import { get, segment, send } from './client.js'
import { createTabs, detailsHead, doWanted } from './details.js'
import { confirm } from './dialog.js'
import { createListing, partOf } from './listing.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { at, badge, button, count, empty, facts, heading, loading, stored } from './parts.js'
import { go, href } from './router.js'
import { table } from './table.js'

const path = '/budgets'

/** @type {View} */
export const view = (page) => {
  const [id, tab] = page.path
  if (id === undefined) return list(page)
  if (id === 'new') return budgetForm(page)
  return tab === 'edit' ? budgetForm(page, id) : one(page, id)
}

/** @param {Budget} budget */
function stateBadge({ enabled, mode }) {
  if (!enabled) return badge('off', 'disabled')
  return mode === 'block' ? badge('ok', 'in force') : badge('info', 'only warns')
}

/** @param {string | null} each */
function eachText(each) {
  if (each === null) return 'all together'
  return each.startsWith('label:') ? `each ${each.slice('label:'.length)}` : `each ${each}`
}

/** What a counter is for. @param {{ value: string, name?: string | undefined }} counter */
function valueName({ value, name }) {
  return value === '' ? html`<span class="muted">none</span>` : stored(name ?? value, 120)
}

/** What the list shows of a budget. @param {Budget} budget */
const shownSpent = ({ spent, values: [first] = [] }) => spent ?? first?.spent ?? []

/** @param {Budget} budget @param {(value: number) => string} money */
function spentCell({ spent, values = [], enabled, mode, requests_without_cost: unknown = 0 }, money) {
  const [first] = values
  if (!enabled) return html`<span class="muted">–</span>`
  const note =
    unknown === 0
      ? nothing
      : html`<div class="muted small">cost of ${count(unknown)} ${unknown === 1 ? 'request' : 'requests'} unknown</div>`
  if (spent !== undefined) return html`${meters(spent, money)}${refusedNote(spent, mode)}${note}`
  if (first === undefined) return html`<span class="muted">nothing spent</span>`
  return html`<div class="small">${valueName(first)}</div>${meters(first.spent, money)}${refusedNote(first.spent, mode)}${note}`
}

/** @param {Page} page */
function list(page) {
  const listing = createListing(page, {
    search: 'Search budgets by name',
    file: 'budgets',
    load: (asked) => partOf(path, {}, asked),
  })
  const create = page.may('budgets.create')
    ? html`<a class="button primary" href="#/budgets/new">Create budget</a>`
    : nothing
  return () => {
    const rows = /** @type {Budget[]} */ (listing.rows() ?? [])
    const limitMoney = windowsMoney(rows.flatMap(({ windows }) => windows))
    const usedMoney = spentMoney(rows.flatMap(shownSpent))
    return listing.show({
      label: 'Budgets',
      tools: html`<div class="actions push"><a class="button" href="#/webhooks">Alerts</a>${create}</div>`,
      empty: empty(
        'No budgets',
        'A budget limits what keys, teams or single workloads may spend in an hour, day, week, month or in all.',
        create,
      ),
      columns: [
        {
          title: 'Budget',
          isHeader: true,
          cell: ({ id, name, windows }) =>
            html`<a href=${href(['budgets', id])}>${stored(name, 120)}</a><div class="muted small">${windowsText(windows, limitMoney)}</div>`,
        },
        { title: 'State', cell: stateBadge },
        {
          title: 'Counts',
          cell: ({ each, value_count: values }) =>
            html`${eachText(each)}${values === undefined ? nothing : html`<div class="muted small">${count(values)} with usage</div>`}`,
        },
        { title: 'Spent, or what runs out next', cell: (budget) => spentCell(budget, usedMoney) },
      ],
    })
  }
}

/** @param {Page} page @param {string} id */
function one(page, id) {
  /** @type {Budget | undefined} */
  let budget
  const self = `${path}/${segment(id)}`
  page.poll(async () => {
    budget = (await get(self)).data
    page.title(budget?.name ?? '')
    doWanted(page, { top_up: () => addAmount() })
  }, 10)
  const change = async (/** @type {object} */ fields, /** @type {string} */ words) => {
    budget = (await send('PATCH', self, fields)).data
    notify('ok', words)
  }
  const remove = async () => {
    const body = html`<p>Nothing is refused for it any more. What was spent stays in the reports.</p>`
    if (!(await confirm({ title: 'Delete this budget?', body, action: 'Delete budget', isDanger: true }))) return
    await send('DELETE', self)
    notify('ok', html`Deleted the budget ${stored(budget?.name, 80)}`)
    go(['budgets'])
  }
  const tabs = createTabs(page, [
    {
      name: 'overview',
      title: 'Overview',
      open: () => () => (budget === undefined ? nothing : overview(page, budget, addAmount)),
    },
    { name: 'history', title: 'History', open: (tab) => changeList(tab, id) },
  ])
  const addAmount = async (/** @type {string} */ value = '') => {
    const changed = budget && (await topUp(budget, value))
    if (changed !== undefined) budget = changed
    page.update()
  }
  return () => {
    if (budget === undefined) return loading()
    const { enabled } = budget
    const toggle = () =>
      change({ enabled: !enabled }, enabled ? 'The budget refuses nothing now' : 'The budget is in force')
    const actions = page.may('budgets.update')
      ? [
          button(page, 'Top up', () => addAmount()),
          button(page, enabled ? 'Disable' : 'Enable', toggle),
          button(page, 'Delete', remove, 'danger'),
          html`<a class="button primary" href=${href(['budgets', id, 'edit'])}>Edit</a>`,
        ]
      : []
    return html`${detailsHead({ state: stateBadge(budget), id, idLabel: 'budget id', actions })}${tabs()}`
  }
}

/** @param {Page} page @param {Budget} budget @param {(value?: string) => Promise<void>} addAmount */
function overview(page, budget, addAmount) {
  return html`<section class="card">${details(budget)}</section>
      ${budget.spent === undefined ? nothing : html`<section class="card stack">${heading('Spent')}${meters(budget.spent)}${refusedNote(budget.spent, budget.mode)}</section>`}
      ${withoutCostNote(page, budget.requests_without_cost)}
      ${budget.values === undefined ? nothing : valuesOf(page, budget, addAmount)}
      ${budget.top_ups.length === 0 ? nothing : topUps(budget)}
      <p><a href=${usageOf(budget)}>Usage this month, also as CSV</a></p>`
}

/** @param {Budget} budget */
function usageOf({ each }) {
  const by = each === null || each.startsWith('label:') ? (each ?? 'key') : each
  return href(['usage'], { by, days: 'month' })
}

/** @param {Budget} budget */
function details({ windows, concurrent_requests: most, each, applies_to: scope, overrides, unpriced, hold, alerts }) {
  return facts([
    ['Limits', windows.length === 0 ? html`<span class="muted">none</span>` : windowsText(windows)],
    ...(most === null ? [] : [/** @type {[string, any]} */ (['Requests at once', count(most)])]),
    ['Counts', eachText(each)],
    ['Applies to', scope === null ? html`<span class="muted">everything</span>` : scopeText(scope)],
    ...Object.entries(overrides ?? {}).map(
      ([value, own]) => /** @type {[string, any]} */ ([`Only ${value.slice(0, 60)}`, windowsText(own)]),
    ),
    ['Models without a price', unpriced === 'count' ? 'count as free' : 'are refused'],
    [
      'Running requests hold',
      { expected: 'what they probably use', worst: 'the most that they can use', off: 'nothing' }[hold],
    ],
    [
      'Alerts at',
      alerts.length === 0 ? html`<span class="muted">no percent</span>` : alerts.map((each) => `${each}%`).join(', '),
    ],
  ])
}

/** @param {object} scope */
function scopeText(scope) {
  const words = (/** @type {unknown} */ of) =>
    Array.isArray(of)
      ? of.join(', ')
      : Object.entries(Object(of))
          .map((pair) => pair.join('='))
          .join(', ')
  return Object.entries(scope).map(([name, of]) => html`<div>${name}: ${stored(words(of), 1_000)}</div>`)
}

/** @typedef {NonNullable<Budget['values']>[number]} Value */

/** @param {Page} page @param {Budget} budget @param {(value: string) => Promise<void>} addAmount */
function valuesOf(page, { values = [], mode, value_count: all = 0 }, addAmount) {
  const money = spentMoney(values.flatMap(({ spent }) => spent))
  const hasUnknown = values.some(({ spent }) => withoutCostIn(spent) > 0)
  return html`<section class="stack">
    ${heading(`Spent by value, what runs out next first${all > values.length ? ` (${count(values.length)} of ${count(all)})` : ''}`)}
    ${table({
      label: 'Spent by value',
      columns: [
        { title: 'Value', isHeader: true, cell: valueName },
        { title: 'Spent', cell: ({ spent }) => html`${meters(spent, money)}${refusedNote(spent, mode)}` },
        ...(hasUnknown
          ? [
              {
                title: 'Cost unknown',
                align: /** @type {const} */ ('end'),
                cell: (/** @type {Value} */ { spent }) => count(withoutCostIn(spent)),
              },
            ]
          : []),
        { title: 'Resets', cell: ({ spent }) => at(spent.find(({ resets_at }) => resets_at !== null)?.resets_at) },
        ...(page.may('budgets.top_up')
          ? [
              {
                title: '',
                align: /** @type {const} */ ('end'),
                cell: (/** @type {{ value: string, name?: string }} */ { value, name }) =>
                  value === ''
                    ? nothing
                    : button(page, 'Top up', () => addAmount(value), '', `Top up ${(name ?? value).slice(0, 100)}`),
              },
            ]
          : []),
      ],
      rows: values,
      key: ({ value }) => value,
      empty: html`<p class="muted">Nothing was used in the current periods.</p>`,
    })}
  </section>`
}

/** @param {Budget} budget */
function topUps({ top_ups: rows }) {
  return html`<section class="stack">
    ${heading('Top-ups')}
    ${table({
      label: 'Top-ups',
      columns: [
        { title: 'Adds', isHeader: true, cell: ({ usd, tokens, requests }) => addedText({ usd, tokens, requests }) },
        { title: 'For', cell: ({ value }) => (value === undefined ? 'every value' : stored(value, 120)) },
        { title: 'Until', cell: ({ until }) => at(until) },
        { title: 'Because', cell: ({ because }) => stored(because, 500) },
      ],
      rows,
      key: ({ at: time }) => time,
    })}
  </section>`
}

/** @param {{ usd?: number | undefined, tokens?: number | undefined, requests?: number | undefined }} amounts */
function addedText({ usd, tokens, requests }) {
  const own = {
    ...(usd !== undefined && { usd }),
    ...(tokens !== undefined && { tokens }),
    ...(requests !== undefined && { requests }),
  }
  return windowsText([{ per: 'lifetime', ...own }]).replaceAll(' in all', '')
}
