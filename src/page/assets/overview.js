// Overview: what needs attention, exchanges over time with why they were refused, and requests and spend. Four requests for data.
/** @import { ExchangeCounts, DoctorFinding, RefusedRequests, UsageReport, UsageRow } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page, View } from '../types.ts' */
import { barChart } from './chart.js'
import { get } from './client.js'
import { icon } from './icons.js'
import { html, nothing } from './lit-html.js'
import {
  ago,
  badge,
  callout,
  count,
  heading,
  isUnknown,
  loading,
  money,
  select,
  spendText,
  stored,
  visible,
} from './parts.js'
import { planNotice } from './plan.js'
import { remedy } from './remedies.js'
import { go, href } from './router.js'
import { table } from './table.js'
import { hourText } from './zone.js'

const tones = {
  error: /** @type {const} */ ('bad'),
  warning: /** @type {const} */ ('warn'),
  note: /** @type {const} */ ('info'),
}

/** @param {string} day such as 2026-11-22 */
export const dayLabel = (day) =>
  new Date(day).toLocaleDateString(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' })

/** An hour or a day from a time, as lists are asked for it. @param {string} at @param {'hour' | 'day'} [per] */
export function hourOf(at, per = 'hour') {
  const from = Date.parse(at)
  if (Number.isNaN(from)) return {}
  const until = new Date(from + (per === 'hour' ? 3_600_000 : 86_400_000)).toISOString()
  return { time: 'range', from: new Date(from).toISOString(), to: until }
}

/** Every day from the first to the last. @param {{ since: string, until: string }} report */
export function daysBetween({ since, until }) {
  const [first, last] = [Date.parse(since), Date.parse(until)]
  return Array.from({ length: (last - first) / 86_400_000 + 1 }, (_, index) =>
    new Date(first + index * 86_400_000).toISOString().slice(0, 10),
  )
}

/** What the numbers count: by hours, or days of which the last ones are shown. */
const periods = {
  hour: { title: 'Last 24 hours', span: '24 hours', per: 'hour', days: 1 },
  week: { title: 'Last 7 days', span: '7 days', per: 'day', days: 7 },
  day: { title: 'Last 30 days', span: '30 days', per: 'day', days: 30 },
}
/** @typedef {typeof periods[keyof typeof periods]} Period */

/** @param {Page} page @returns {Period} */
const periodOf = ({ query }) => periods[/** @type {keyof typeof periods} */ (query.per ?? 'hour')] ?? periods.hour

/** The period and the one before it, in whole days. @param {Period} period */
function twice({ days }) {
  const shown = Math.max(2 * days, 7)
  const day = (/** @type {number} */ ago) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)
  return { since: day(shown - 1), until: day(0) }
}

/** @type {View} */
export const view = (page) => {
  /** @type {{ findings?: DoctorFinding[], examinedAt?: string, counts?: ExchangeCounts, usage?: UsageReport, refused?: RefusedRequests }} */
  const shown = {}
  // Each part appears when it arrives, and rests as long as it is good for.
  page.poll(async () => {
    const { per } = periodOf(page)
    shown.counts = await get('/workload-identity/audit/counts', { per: per === 'hour' ? undefined : per })
  }, 30)
  page.poll(async () => {
    shown.usage = await get('/usage', { by: 'day', ...twice(periodOf(page)) })
  }, 60)
  page.poll(async () => {
    shown.refused = await get('/usage/refused')
  }, 60)
  page.poll(async () => {
    const { data } = await get('/workload-identity/findings', { installation: true })
    ;[shown.findings, shown.examinedAt] = [data.findings, data.examined_at]
  }, 120)
  const choose = (/** @type {string} */ per) => {
    page.setQuery({ per: per === 'hour' ? '' : per })
    void page.refresh()
  }
  return () => {
    const { findings, counts, usage, refused, examinedAt } = shown
    const period = periodOf(page)
    const isUnused = counts?.data.every(({ issued }) => issued === 0)
    return html`${planNotice(page)}
      ${isUnused ? callout('info', html`No token was issued in the last ${period.span}. <a href="#/start">Get started</a> shows the three steps to one.`) : nothing}
      ${findings === undefined ? nothing : strip(findings)}
      ${heading('Activity', timeSelect(page, choose))}
      ${tiles(period, counts, usage, refused)}
      <section class="card">${heading('Needs attention', examinedAt === undefined ? nothing : html`<span class="muted small">examined ${ago(examinedAt)}</span>`)}${findings === undefined ? loading() : attention(page, findings)}</section>
      <section class="card">${counts === undefined ? loading() : exchanges(cut(counts, period))}</section>
      <div class="columns even">
        <section class="card">${usage === undefined ? loading() : ofDays('Requests per day (UTC)', usage, period, 'requests', count)}</section>
        <section class="card">${usage === undefined ? loading() : ofDays('Spend per day (UTC)', usage, period, 'cost', money)}</section>
      </div>`
  }
}

/** What the strip of health shows: the areas of findings, and where the page has more. @type {readonly { title: string, areas: readonly string[], place: string }[]} */
const parts = [
  { title: 'Issuers', areas: ['issuers'], place: 'issuers' },
  { title: 'Policies', areas: ['policies', 'organizations'], place: 'policies' },
  { title: 'Budgets', areas: ['budgets'], place: 'budgets' },
  { title: 'Inference servers', areas: ['upstreams'], place: 'upstreams' },
  { title: 'Database and disk', areas: ['server', 'database', 'disk', 'archive'], place: 'system' },
  { title: 'Backup', areas: ['backup'], place: 'system' },
  { title: 'Nodes', areas: ['nodes'], place: 'system' },
  { title: 'Certificate and keys', areas: ['tls', 'master_key'], place: 'system' },
  { title: 'Audit log', areas: ['audit_log'], place: 'audit-log' },
]

/** The health of each part at a glance. @param {DoctorFinding[]} findings */
function strip(findings) {
  return html`<nav class="strip" aria-label="Health">
    ${parts.map(({ title, areas, place }) => {
      const found = findings.filter(({ area }) => areas.includes(area))
      const [worst] = /** @type {const} */ (['error', 'warning', 'note']).filter((level) =>
        found.some((each) => each.level === level),
      )
      const state = worst === undefined ? html`<span class="hidden">: fine</span>` : badge(tones[worst], worst)
      return html`<a href=${placeOf(place, found, worst)} title=${found.map(({ message }) => visible(message)).join('\n') || nothing}>${worst === undefined ? icon('ok') : nothing}<span>${title}</span>${state}</a>`
    })}
  </nav>`
}

/** Where the worst of them are: a budget can be that of a key. @param {string} place @param {DoctorFinding[]} found @param {DoctorFinding['level'] | undefined} worst */
function placeOf(place, found, worst) {
  const about = found.find(({ level }) => level === worst)
  if (place !== 'budgets' || about?.operation !== 'keys.update') return href([place])
  return href(['keys'], about.count === 1 ? { search: about.names[0] ?? '' } : {})
}

/** The last hours or days of the counts. @param {ExchangeCounts} counts @param {Period} period */
const cut = (counts, { per, days }) => ({ ...counts, data: counts.data.slice(per === 'hour' ? -24 : -days) })

/** @param {Period} period @param {ExchangeCounts | undefined} counts @param {UsageReport | undefined} usage @param {RefusedRequests | undefined} refusedRequests */
function tiles(period, counts, usage, refusedRequests) {
  const { per, days, span } = period
  const parts = per === 'hour' ? 24 : days
  const exchanged = (/** @type {'issued' | 'refused'} */ name) => {
    const values = counts?.data.map((row) => row[name]) ?? []
    return {
      now: sum(values.slice(-parts)),
      before: values.length >= 2 * parts ? sum(values.slice(-2 * parts, -parts)) : undefined,
    }
  }
  const rows = usage?.data ?? []
  const first = usage && daysBetween(usage).at(-days)
  const [now, before] = [
    rows.filter(({ day = '' }) => day >= (first ?? '')),
    rows.filter(({ day = '' }) => day < (first ?? '')),
  ]
  const spent = {
    cost: sum(now.map(({ cost }) => cost)),
    requests_without_cost: sum(now.map((row) => row.requests_without_cost)),
  }
  const requests = { now: sum(now.map((row) => row.requests)), before: sum(before.map((row) => row.requests)) }
  const usageSpan = days === 1 ? 'today (UTC)' : `in the last ${span}`
  const { issued, refused } = { issued: exchanged('issued'), refused: exchanged('refused') }
  return html`<div class="tiles">
    ${tile('Tokens issued', counts && count(issued.now), `in the last ${span}`, href(['exchanges'], { outcome: 'issued' }), issued)}
    ${tile('Exchanges refused', counts && count(refused.now), `in the last ${span}`, href(['exchanges'], { outcome: 'refused' }), refused)}
    ${tile('Inference requests', usage && count(requests.now), usageSpan, href(['requests'], days === 1 ? hourOf(today(), 'day') : { time: `${days}d` }), requests)}
    ${tile('Requests refused', ...refusedOf(refusedRequests), href(['requests'], { tab: 'refused' }), { now: 0 })}
    ${tile('Spend', usage && spendText(spent), usageSpan, href(['usage'], { show: 'cost', days: `${days}` }), { now: spent.cost, before: sum(before.map(({ cost }) => cost)) })}
  </div>`
}

/** In UTC, as usage is counted. */
const today = () => new Date().toISOString().slice(0, 10)

/** @param {readonly number[]} values */
const sum = (values) => values.reduce((all, value) => all + value, 0)

/**
 * A node that restarted has counted for less than a day: it does not know that none was refused before.
 * @param {RefusedRequests | undefined} counted @returns {[value: string | undefined, span: Content]}
 */
function refusedOf(counted) {
  if (counted === undefined) return [undefined, nothing]
  const { data, since } = counted
  const requests = sum(data.map((row) => row.requests))
  if (Date.now() - Date.parse(since) >= 86_400_000) return [count(requests), 'in the last 24 hours']
  return requests === 0
    ? ['–', html`not known before the start, ${ago(since)}`]
    : [count(requests), html`since the start, ${ago(since)}; not known before`]
}

/** A number that leads to what it counts. @param {string} name @param {string | undefined} value @param {Content} span @param {string} to @param {{ now: number, before?: number | undefined }} trend */
function tile(name, value, span, to, trend) {
  return html`<a href=${to}><span class="muted">${name}</span><strong>${value ?? '…'}</strong><span class="muted small">${span}${trendText(trend)}</span></a>`
}

/** Compared with the time before it. @param {{ now: number, before?: number | undefined }} trend */
function trendText({ now, before }) {
  if (!before) return ''
  const percent = Math.round((now / before - 1) * 100)
  return percent === 0 ? ', as before' : `, ${percent > 0 ? '+' : '−'}${count(Math.abs(percent))} %`
}

/** @param {Page} page @param {(per: string) => void} choose */
function timeSelect(page, choose) {
  const options = Object.entries(periods).map(([name, { title }]) => /** @type {const} */ ([name, title]))
  return select('Time', page.query.per ?? 'hour', options, choose)
}

/** @param {ExchangeCounts} counts */
function exchanges(counts) {
  return html`${barChart({
    label: `Issued and refused per ${counts.per === 'day' ? 'day (UTC)' : 'hour'}`,
    labels: counts.data.map(({ at }) => (counts.per === 'hour' ? hourText(at) : dayLabel(at))),
    series: [
      {
        ...{ name: 'Issued', tone: 'ok', values: counts.data.map(({ issued }) => issued) },
        choose: () => go(['exchanges'], { outcome: 'issued' }),
      },
      {
        ...{ name: 'Refused', tone: 'bad', values: counts.data.map(({ refused }) => refused) },
        choose: () => go(['exchanges'], { outcome: 'refused' }),
      },
    ],
    choose: (index) => go(['exchanges'], hourOf(counts.data[index]?.at ?? '', counts.per)),
  })}
  ${counts.counted_since > counts.since ? callout('info', 'Older exchanges of this time are too many to count.') : nothing} ${reasons(counts)}`
}

/** @param {Page} page @param {DoctorFinding[]} findings */
function attention(page, findings) {
  if (findings.length === 0) return html`<p>${badge('ok', 'all fine')} Nothing needs attention.</p>`
  return html`<ul class="plain">
    ${findings.map(
      (finding) =>
        html`<li><p>${badge(tones[finding.level], finding.level)} ${stored(finding.message, 1_000)}.</p>${remedy(page, finding)}</li>`,
    )}
  </ul>`
}

/** @param {ExchangeCounts} counts */
function reasons(counts) {
  /** @type {Map<string, number>} */
  const sums = new Map()
  for (const { reasons } of counts.data)
    for (const [reason, number] of Object.entries(reasons)) sums.set(reason, (sums.get(reason) ?? 0) + number)
  return table({
    label: 'Refusals by reason',
    columns: [
      {
        title: 'Refused because',
        isHeader: true,
        cell: ([reason]) => html`<a class="mono" href=${href(['exchanges'], { reason })}>${reason}</a>`,
      },
      { title: 'Exchanges', align: 'end', cell: ([, number]) => count(number) },
    ],
    rows: [...sums].sort(([, one], [, other]) => other - one),
    key: ([reason]) => reason,
    empty: html`<p class="muted">No exchange was refused in this time.</p>`,
  })
}

/** @param {string} label @param {UsageReport} usage @param {Period} period @param {'requests' | 'cost'} name @param {(value: number) => string} format */
function ofDays(label, usage, period, name, format) {
  const days = daysBetween(usage).slice(-Math.max(period.days, 7))
  const known = new Map(usage.data.map((row) => [row.day, row]))
  return barChart({
    label,
    labels: days.map(dayLabel),
    series: [{ name: label.split(' ')[0] ?? '', values: days.map((day) => measureOf(known.get(day), name)) }],
    format,
    choose: (index) => go(['requests'], hourOf(days[index] ?? '', 'day')),
  })
}

/** A number of a row; null for a cost that nobody knows. @param {Pick<UsageRow, 'cost' | 'requests' | 'total_tokens' | 'requests_without_cost'> | undefined} sums @param {'requests' | 'cost' | 'total_tokens'} name */
export function measureOf(sums, name) {
  return name === 'cost' && sums !== undefined && isUnknown(sums) ? null : (sums?.[name] ?? 0)
}
