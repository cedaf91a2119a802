// Usage: totals by key, policy, subject, model, preset or day, as stacked bars with the table behind them and as CSV; of everything, or of
// one key or policy.
/** @import { UsageReport, UsageRow } from '../../admin/transport/response-types.ts' */
/** @import { Column, Content, Page, View } from '../types.ts' */
import { barChart } from './chart.js'
import { get } from './client.js'
import { downloadCsv } from './csv.js'
import { field } from './form.js'
import { html, nothing } from './lit-html.js'
import { createNames } from './names.js'
import { dayLabel, daysBetween, hourOf, measureOf } from './overview.js'
import { at, button, callout, count, empty, loading, money, moneyAlike, spend, spendText, stored } from './parts.js'
import { go, href } from './router.js'
import { table } from './table.js'

const path = '/usage'
const [rowsPerPage, seriesMax] = [50, 8]
/** Whose labels are in the menu. */
const keysRead = 100
const spans = {
  1: 'Today (UTC)',
  7: 'Last 7 days',
  30: 'Last 30 days',
  90: 'Last 90 days',
  month: 'This month',
  'last-month': 'Last month',
}

/** What names a row. */
export const groupings = {
  key: {
    title: 'Key',
    name: (/** @type {UsageRow} */ row) => row.key_name ?? row.key_id,
  },
  policy: {
    title: 'Policy',
    name: (/** @type {UsageRow} */ row) => row.policy_name ?? row.policy_id ?? 'no policy, with the key',
  },
  subject: {
    title: 'Subject',
    name: (/** @type {UsageRow} */ row) =>
      row.subject === null ? 'no token, with the key' : `${row.subject} (${row.issuer_url ?? row.issuer_id})`,
  },
  attribution: {
    title: 'Attribution',
    name: (/** @type {UsageRow} */ row) => row.attribution ?? 'not attributed',
  },
  model: { title: 'Model', name: (/** @type {UsageRow} */ row) => row.model ?? 'unknown' },
  preset: {
    title: 'Preset',
    name: (/** @type {UsageRow} */ row) => row.preset_version ?? 'no preset',
  },
  upstream: {
    title: 'Inference server',
    name: (/** @type {UsageRow} */ row) => row.upstream ?? 'none reached',
  },
  user: { title: 'User', name: (/** @type {UsageRow} */ row) => row.user ?? 'not said' },
  session: {
    title: 'Session',
    name: (/** @type {UsageRow} */ row) => row.session_id ?? 'not said',
  },
  day: { title: 'Day (UTC)', name: (/** @type {UsageRow} */ row) => row.day },
}
/** @typedef {keyof typeof groupings | `label:${string}`} Grouping */

const labelPrefix = 'label:'

/** What names a row of a grouping. @param {Grouping} by */
function groupingOf(by) {
  if (!by.startsWith(labelPrefix)) return groupings[/** @type {keyof typeof groupings} */ (by)]
  const label = by.slice(labelPrefix.length)
  return { title: `Label ${label}`, name: (/** @type {UsageRow} */ row) => row.label ?? 'not set' }
}

const measures = {
  total_tokens: { title: 'Tokens', format: count },
  requests: { title: 'Requests', format: count },
  cost: { title: 'Spend', format: money },
}
/** @typedef {keyof typeof measures} Measure */

/** @typedef {{ key?: string, policy?: string }} Only */

/** What the address asks for. @param {Page} page @param {Only} [only] what is chosen, by id, where the address does not say it */
function askedBy({ query }, { key = query.key, policy = query.policy } = {}) {
  const days = Object.hasOwn(spans, query.days ?? '') ? String(query.days) : '30'
  const by = /** @type {Grouping} */ (
    Object.hasOwn(groupings, query.by ?? '') || query.by?.startsWith(labelPrefix)
      ? query.by
      : key === undefined
        ? 'key'
        : 'model'
  )
  const measure = /** @type {Measure} */ (Object.hasOwn(measures, query.show ?? '') ? query.show : 'total_tokens')
  return { by, measure, days, filter: { by, order: measure, ...period(days), key, policy } }
}

/** First and last day in UTC. @param {string} span */
function period(span) {
  const now = new Date()
  const day = (/** @type {number} */ months, /** @type {number} */ date) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, date)).toISOString().slice(0, 10)
  const today = now.getUTCDate()
  if (span === 'last-month') return { since: day(-1, 1), until: day(0, 0) }
  return { since: span === 'month' ? day(0, 1) : day(0, today + 1 - Number(span)), until: day(0, today) }
}

/** @type {View} */
export const view = (page) => usagePanel(page)

/** Of everything, or of one key or policy. @param {Page} page @param {Only} [only] @returns {() => Content} */
export function usagePanel(page, only) {
  /** @type {UsageReport | undefined} */
  let report
  /** The filter of the report: another one's numbers must not stand below what is chosen. */
  let reportOf = ''
  const chosen = () => JSON.stringify(askedBy(page, only).filter)
  /** @type {Set<string>} */
  const labels = new Set()
  const readLabels = async () => {
    for (const key of (await get('/keys', { limit: keysRead })).data)
      for (const label of Object.keys(key.labels ?? {})) labels.add(label)
  }
  const load = async () => {
    const asked = chosen()
    const found = await get(path, {
      ...askedBy(page, only).filter,
      ...{ per_day: true, days_of: seriesMax, limit: rowsPerPage },
    })
    // The menu can wait until there is something to see.
    if (report === undefined) page.poll(readLabels, 300)
    if (asked === chosen()) [report, reportOf] = [found, asked]
  }
  page.poll(load, 60)
  const more = async () => {
    const { data } = await get(path, { ...askedBy(page, only).filter, limit: rowsPerPage, offset: report?.data.length })
    report?.data.push(...data)
    page.update()
  }
  const choose = (/** @type {string} */ name) => (/** @type {string} */ value) => {
    page.setQuery({ [name]: value })
    void page.refresh()
  }
  const nameOf = createNames(page)
  const labelOptions = (/** @type {Grouping} */ by) => {
    const chosenLabel = by.startsWith(labelPrefix) ? [by.slice(labelPrefix.length)] : []
    return [...new Set([...labels, ...chosenLabel])]
      .toSorted()
      .map((label) => /** @type {[string, string]} */ ([`${labelPrefix}${label}`, `Label: ${label.slice(0, 60)}`]))
  }
  return () => {
    const { by, measure, days, filter } = askedBy(page, only)
    const chosenId = only === undefined ? (filter.key ?? filter.policy) : undefined
    const download = () => downloadCsv(path, filter)
    const titles = (/** @type {Record<string, { title: string }>} */ of) =>
      Object.entries(of).map(([name, { title }]) => /** @type {[string, string]} */ ([name, title]))
    return html`<div class="filters">
        ${field({ label: 'Group by', name: 'by', value: by, options: [...titles(groupings), ...labelOptions(by)], onInput: choose('by') })}
        ${field({ label: 'Time', name: 'days', value: days, options: Object.entries(spans), onInput: choose('days') })}
        ${field({ label: 'Show', name: 'show', value: measure, options: titles(measures), onInput: choose('show') })}
        ${button(page, 'Download CSV', download)}
      </div>
      ${chosenId === undefined ? nothing : html`<p>Only the ${filter.key === undefined ? 'policy' : 'key'} ${stored(nameOf(filter.key === undefined ? '/workload-identity/policies' : '/keys', chosenId), 120)}: <a href=${href(['usage'], { by })}>show everything</a></p>`}
      ${report === undefined || reportOf !== chosen() ? (page.hasFailed() ? nothing : loading()) : shown(page, report, more, only)}`
  }
}

/** @param {Page} page @param {UsageReport} report @param {() => Promise<void>} more @param {Only} [only] @returns {Content} */
function shown(page, report, more, only) {
  const { data, total, total_count: groups, counted_since: counted, since } = report
  const { by, measure, filter } = askedBy(page, only)
  if (data.length === 0)
    return empty(
      'No usage in this time',
      'Inference requests appear here as soon as they end.',
      html`<a class="button" href="#/start">Show me how to send one</a>`,
    )
  const { title, format } = measures[measure]
  const days = daysBetween(report)
  return html`${counted.slice(0, 10) > since ? callout('warn', html`There are too many requests to add up: this counts those since ${at(counted)}.`) : nothing}
    <section class="card">${barChart({
      label: `${title} per day (UTC), ${measure === 'cost' ? spendText(total) : format(total[measure])} in all`,
      labels: days.map(dayLabel),
      series: seriesOf(page, report, days, by),
      format,
      choose: (index) =>
        go(['requests'], { ...hourOf(days[index] ?? since, 'day'), key: filter.key, policy: filter.policy }),
    })}</section>
    ${table({ label: `Usage by ${groupingOf(by).title}`, columns: columnsOf(by, data), rows: data, key: groupingOf(by).name })}
    <div class="footer">
      <span class="muted" role="status">${data.length < groups ? `${count(data.length)} of ` : ''}${many(groups, 'row')}; in all ${many(total.requests, 'request')}, ${many(total.total_tokens, 'token')}, ${spendText(total)}</span>
      ${data.length < groups ? button(page, 'Show more', more) : nothing}
    </div>`
}

/** @param {number} number @param {string} noun */
const many = (number, noun) => `${count(number)} ${noun}${number === 1 ? '' : 's'}`

/** @param {Grouping} by @param {readonly UsageRow[]} rows @returns {Column<UsageRow>[]} */
function columnsOf(by, rows) {
  const format = moneyAlike(rows.map(({ cost }) => cost))
  const { title, name } = groupingOf(by)
  const number = (
    /** @type {string} */ title,
    /** @type {'requests' | 'prompt_tokens' | 'completion_tokens' | 'total_tokens'} */ field,
  ) => /** @type {Column<UsageRow>} */ ({ title, align: 'end', cell: (row) => count(row[field]) })
  return [
    { title, isHeader: true, cell: (row) => stored(name(row), 200) },
    number('Requests', 'requests'),
    number('Prompt tokens', 'prompt_tokens'),
    number('Completion tokens', 'completion_tokens'),
    number('Tokens', 'total_tokens'),
    { title: 'Spend', align: 'end', cell: (row) => spend(row, format) },
  ]
}

/** The largest groups, and all others as one. @param {Page} page @param {UsageReport} report @param {string[]} days @param {Grouping} by */
function seriesOf(page, { data: rows, total_count: groups, other_days: otherDays = [] }, days, by) {
  const { measure } = askedBy(page)
  if (by === 'day') {
    const known = new Map(rows.map((row) => [row.day, row]))
    return [{ name: measures[measure].title, values: days.map((day) => measureOf(known.get(day), measure)) }]
  }
  const valuesOf = (/** @type {readonly NonNullable<UsageRow['days']>[]} */ some) => {
    /** @type {Map<string, number | null>} */
    const known = new Map()
    for (const each of some.flat()) known.set(each.day, addKnown(known.get(each.day), measureOf(each, measure)))
    return days.map((day) => known.get(day) ?? 0)
  }
  const own = groups > seriesMax ? seriesMax - 1 : seriesMax
  const named = rows.slice(0, own).map((row) => ({
    name: String(groupingOf(by).name(row)).slice(0, 60),
    values: valuesOf([row.days ?? []]),
    ...onlyOf(page, row, by),
  }))
  if (groups <= own) return named
  const others = valuesOf([otherDays, ...rows.slice(own, seriesMax).map((row) => row.days ?? [])])
  return [...named, { name: `${count(groups - own)} others`, values: others, tone: /** @type {const} */ ('rest') }]
}

/** A sum of which a part may be unknown. @param {number | null | undefined} sum @param {number | null} value */
const addKnown = (sum, value) => (value === null ? (sum ?? null) : (sum ?? 0) + value)

/**
 * A click on the name of a key or a policy shows only its usage, one on a model or a server its requests.
 * @param {Page} page @param {UsageRow} row @param {Grouping} by
 */
function onlyOf(page, row, by) {
  const { [/** @type {'model'} */ (by)]: text } = row
  if ((by === 'model' || by === 'upstream') && text) return { choose: () => go(['requests'], { [by]: text }) }
  const id = by === 'key' ? row.key_id : by === 'policy' ? row.policy_id : undefined
  if (!id) return {}
  return {
    choose: () => {
      page.setQuery({ [by]: id, by: by === 'key' ? 'model' : 'key' })
      void page.refresh()
    },
  }
}
